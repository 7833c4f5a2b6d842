-- Lists assets of one bucket with their descriptions.
--
-- KEYS  index, about
-- ARGV  low, high (as ZRANGEBYLEX takes them), limit
-- Returns {refs, descriptions}.

local CHUNK = 1000
local refs = redis.call('ZRANGEBYLEX', KEYS[1], ARGV[1], ARGV[2], 'LIMIT', 0, ARGV[3])
local about = {}
for from = 1, #refs, CHUNK do
  local upto = math.min(from + CHUNK - 1, #refs)
  for n, description in ipairs(redis.call('HMGET', KEYS[2], unpack(refs, from, upto))) do
    about[from + n - 1] = description
  end
end
return {refs, about}
