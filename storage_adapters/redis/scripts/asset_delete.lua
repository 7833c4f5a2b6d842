-- Deletes an asset whole; an absent one is no error.
--
-- KEYS  asset, index, about
-- ARGV  ref

for _, command in ipairs({{'UNLINK', KEYS[1]}, {'ZREM', KEYS[2], ''}, {'HDEL', KEYS[3], ''}}) do
  if not redis.acl_check_cmd(unpack(command)) then
    return redis.error_reply('NOPERM the user may not run ' .. command[1])
  end
end
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[3], ARGV[1])
redis.call('UNLINK', KEYS[1])
return 1
