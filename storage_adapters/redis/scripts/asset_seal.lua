-- Makes an upload an asset, whole: its last piece comes along.
--
-- KEYS  upload, asset, index, about, uploads (all in one slot)
-- ARGV  ref, description, number of pieces, last piece, note of the upload ('' for none)
-- Returns 1; 0 when pieces are missing.

if redis.call('HEXISTS', KEYS[4], ARGV[1]) == 1 then
  return 1
end
local count = tonumber(ARGV[3])
if redis.call('HLEN', KEYS[1]) < count - 1 then
  return 0
end
for _, command in ipairs({
  {'HSET', KEYS[1], '', ''}, {'PERSIST', KEYS[1]}, {'RENAME', KEYS[1], KEYS[2]}, {'HSET', KEYS[4], '', ''},
  {'ZADD', KEYS[3], 0, ''}, {'ZREM', KEYS[5], ''},
}) do
  if not redis.acl_check_cmd(unpack(command)) then
    return redis.error_reply('NOPERM the user may not run ' .. command[1])
  end
end
redis.call('HSET', KEYS[1], count - 1, ARGV[4])
redis.call('PERSIST', KEYS[1])
redis.call('RENAME', KEYS[1], KEYS[2])
redis.call('HSET', KEYS[4], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[3], 0, ARGV[1])
if ARGV[5] ~= '' then
  redis.call('ZREM', KEYS[5], ARGV[5])
end
return 1
