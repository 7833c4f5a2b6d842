-- Removes a partition whole.
--
-- KEYS  values, bodies, index, partitions
-- ARGV  partition, channel, incarnation ('' for any): another one is left alone, so that a repeated drop harms nobody

for _, command in ipairs({
  {'UNLINK', KEYS[1]}, {'UNLINK', KEYS[2]}, {'UNLINK', KEYS[3]}, {'ZREM', KEYS[4], ''},
}) do
  if not redis.acl_check_cmd(unpack(command)) then
    return redis.error_reply('NOPERM the user may not run ' .. command[1])
  end
end
local stored = redis.call('HGET', KEYS[1], 'meta\1')
if stored and ARGV[3] ~= '' then
  local ok, meta = pcall(cjson.decode, string.sub(stored, 17))
  if ok and type(meta) == 'table' and meta.inc ~= ARGV[3] then
    return 0
  end
end
redis.call('ZREM', KEYS[4], ARGV[1])
redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3])
redis.pcall('PUBLISH', ARGV[2], '0:' .. ARGV[1])
return 1
