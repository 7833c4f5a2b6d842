-- Adds a piece to an upload, and notes when that was: an upload to which nothing comes any more is known by it.
--
-- KEYS  upload, uploads (in one slot)
-- ARGV  number of the piece, piece, seconds until the upload expires, note, the note before ('' for none)

for _, command in ipairs({
  {'HSET', KEYS[1], '', ''}, {'EXPIRE', KEYS[1], 1}, {'ZADD', KEYS[2], 0, ''}, {'ZREM', KEYS[2], ''},
}) do
  if not redis.acl_check_cmd(unpack(command)) then
    return redis.error_reply('NOPERM the user may not run ' .. command[1])
  end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
redis.call('ZADD', KEYS[2], 0, ARGV[4])
if ARGV[5] ~= '' and ARGV[5] ~= ARGV[4] then
  redis.call('ZREM', KEYS[2], ARGV[5])
end
return 1
