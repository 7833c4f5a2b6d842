-- Reads one page of records in key order, as of one moment.
--
-- KEYS  values, bodies, index
-- ARGV  low, high (as ZRANGEBYLEX takes them), '1' for descending, limit, '1' for bodies, bytes of the prefix, delimiter or '',
--       '1' to filter, needle
-- Returns {keys, values, bodies, common prefixes, next or ''}. A page ends early when it holds many bytes.

local values, bodies, index = KEYS[1], KEYS[2], KEYS[3]
local low, high = ARGV[1], ARGV[2]
local descending, with_bodies, filtered = ARGV[3] == '1', ARGV[5] == '1', ARGV[8] == '1'
local limit, prefix_bytes, delimiter, needle = tonumber(ARGV[4]), tonumber(ARGV[6]), ARGV[7], ARGV[9]
local FOLDING_CHUNK = 64
local READING_CHUNK = 64
local MOST_EXAMINED = 4096
local MOST_BYTES = 8388608

local function range(count)
  if descending then
    return redis.call('ZREVRANGEBYLEX', index, high, low, 'LIMIT', 0, count)
  end
  return redis.call('ZRANGEBYLEX', index, low, high, 'LIMIT', 0, count)
end

-- Names are keys, and common prefixes for which `folded` holds; folded keys are passed over by seeking.
local folded = {}
local function fold(wanted)
  local names = {}
  while true do
    local found = range(FOLDING_CHUNK)
    local common = nil
    for _, key in ipairs(found) do
      local name = key
      local from, upto = string.find(key, delimiter, prefix_bytes + 1, true)
      if from then
        name = string.sub(key, 1, upto)
        folded[name] = true
      end
      if names[#names] ~= name then
        if #names == wanted then
          return names
        end
        names[#names + 1] = name
      end
      common = from and name
    end
    if #found < FOLDING_CHUNK then
      return names
    end
    local reached = common or found[#found]
    if descending then
      high = '(' .. reached
    else
      low = '(' .. reached .. (common and '\255' or '')
    end
  end
end

local most = filtered and math.max(limit, MOST_EXAMINED) or limit
local names
if delimiter ~= '' then
  most = limit
  names = fold(most + 1)
else
  names = range(most + 1)
end

local keys, found, held, prefixes = {}, {}, {}, {}
local done, bytes = 0, 0
local upto = math.min(most, #names)
local chunk = (with_bodies or filtered) and READING_CHUNK or 1000
while done < upto and #keys + #prefixes < limit and bytes < MOST_BYTES do
  local ask = {unpack(names, done + 1, math.min(done + chunk, upto))}
  local records = redis.call('HMGET', values, unpack(ask))
  for n, name in ipairs(ask) do
    if #keys + #prefixes == limit or bytes >= MOST_BYTES then
      break
    end
    done = done + 1
    if folded[name] then
      prefixes[#prefixes + 1] = name
    else
      local body = (with_bodies or filtered) and redis.call('HGET', bodies, name)
      if not filtered or not body or string.find(body, needle, 1, true) then
        keys[#keys + 1] = name
        found[#keys] = records[n] or false
        held[#keys] = with_bodies and body or false
      end
      bytes = bytes + #(records[n] or '') + #(body or '')
    end
  end
end
return {keys, found, held, prefixes, done < #names and names[done] or ''}
