-- Removes uploads that were not finished; one that is gone already is no error.
--
-- KEYS  uploads, upload … (all in one slot)
-- ARGV  the note of each; one that another has replaced meanwhile goes on
-- Returns how many were removed.

for _, command in ipairs({{'ZREM', KEYS[1], ''}, {'UNLINK', KEYS[1]}}) do
  if not redis.acl_check_cmd(unpack(command)) then
    return redis.error_reply('NOPERM the user may not run ' .. command[1])
  end
end
local removed = 0
for n, note in ipairs(ARGV) do
  if redis.call('ZREM', KEYS[1], note) == 1 then
    removed = removed + redis.call('UNLINK', KEYS[n + 1])
  end
end
return removed
