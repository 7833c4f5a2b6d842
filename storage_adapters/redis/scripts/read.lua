-- Reads records with their bodies, all as of one moment.
--
-- KEYS  values, bodies
-- ARGV  record keys
-- Returns {values, bodies}, in the order of the keys.

local CHUNK = 1000
local values, bodies = {}, {}
for from = 1, #ARGV, CHUNK do
  local upto = math.min(from + CHUNK - 1, #ARGV)
  for n, value in ipairs(redis.call('HMGET', KEYS[1], unpack(ARGV, from, upto))) do
    values[from + n - 1] = value
  end
  for n, body in ipairs(redis.call('HMGET', KEYS[2], unpack(ARGV, from, upto))) do
    bodies[from + n - 1] = body
  end
end
return {values, bodies}
