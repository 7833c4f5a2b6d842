-- Applies one batch, or refuses it: everything is judged and prepared before the first write, because a script does not roll back.
--
-- KEYS  values, bodies, index, partitions (all in one slot)
-- ARGV  partition, channel, request (MessagePack), then each put's value, followed by its body where the request says so
-- Returns {'ok', sequence, at, value of meta}, {'refused', what, subject}, {'ceiling', counter, used}, {'behind', sequence} or {'corrupt', key}.

local values, bodies, index, partitions = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local request = cmsgpack.unpack(ARGV[3])
local META = 'meta\1'
local CHUNK = 1000
local MOST_COMMITS = 128
-- What the batch knows of a key that it puts; anything else says that it may be there.
local ABSENT, THERE = 0, 1

local function read(command, key, fields)
  local found = {}
  for from = 1, #fields, CHUNK do
    local upto = math.min(from + CHUNK - 1, #fields)
    for n, value in ipairs(redis.call(command, key, unpack(fields, from, upto))) do
      found[from + n - 1] = value
    end
  end
  return found
end

local function write(command, key, arguments)
  for from = 1, #arguments, CHUNK do
    redis.call(command, key, unpack(arguments, from, math.min(from + CHUNK - 1, #arguments)))
  end
end

local function digits(number)
  return string.format('%016.0f', number)
end

local function covers(path, subtree, touched)
  if not touched then
    return false
  end
  if touched == path or string.sub(touched, 1, 1) ~= '/' then -- a name that was erased may have been anywhere
    return true
  end
  return subtree and (path == '/' or string.sub(touched, 1, #path + 1) == path .. '/')
end

-- Returns the first expected-quiet path that one of the changes touches.
local function disturbed(changes, quiet)
  for _, change in ipairs(changes) do
    for n = 1, #quiet, 2 do
      if covers(quiet[n], quiet[n + 1], change.p) or covers(quiet[n], quiet[n + 1], change.f) then
        return quiet[n]
      end
    end
  end
end

-- What the record holds of `meta`.
local stored = redis.call('HGET', values, META)
local meta = nil
if stored then
  local ok, decoded = pcall(cjson.decode, string.sub(stored, 17))
  if not ok or type(decoded) ~= 'table' or type(decoded.seq) ~= 'number' or type(decoded.at) ~= 'number' then
    return {'corrupt', META}
  end
  meta = decoded
end
local last = meta and meta.seq or 0

-- The partition is the one that the batch was made for.
if (request.incarnation or false) ~= (meta and meta.inc or false) then
  return {'refused', 'incarnation', ''}
end
if request.epoch and request.epoch ~= (meta and meta.epoch or 0) then
  return {'refused', 'epoch', ''}
end
if meta and request.uploaded and request.uploaded <= (meta.swept or 0) then
  return {'refused', 'upload', ''}
end

-- Keys have the revisions that are expected, and bodies are taken from records that are there.
if request.expect then
  for n, record in ipairs(read('HMGET', values, request.expect)) do
    local revision = record and struct.unpack('>I8', record) or 0
    if revision ~= request.revisions[n] then
      return {'refused', 'revision', request.expect[n]}
    end
  end
end
local taken = {}
if request.takes then
  for n, record in ipairs(read('HMGET', values, request.takes)) do
    if not record then
      return {'refused', 'revision', request.takes[n]}
    end
  end
  for n, body in ipairs(read('HMGET', bodies, request.takes)) do
    taken[request.takes[n]] = body
  end
end

-- Ranges are empty.
if request.empty then
  for n = 1, #request.empty, 2 do
    local low, high = request.empty[n], request.empty[n + 1]
    if redis.call('ZRANGEBYLEX', index, '[' .. low, '(' .. high, 'LIMIT', 0, 1)[1] then
      return {'refused', 'empty', low}
    end
  end
end

-- No commit since then touched a path that is expected quiet; who is far behind judges the old ones outside of this script.
if request.quiet then
  if last - request.since > MOST_COMMITS then
    return {'behind', last}
  end
  for sequence = request.since + 1, last do
    local key = 'log\1' .. digits(sequence) .. '\1'
    local record = redis.call('HGET', values, key)
    if not record then
      return {'refused', 'quiet', request.quiet[1]}
    end
    local ok, entry = pcall(cjson.decode, string.sub(record, 17))
    if not ok then
      return {'corrupt', key}
    end
    local path = disturbed(entry.changes or {}, request.quiet)
    for part = 0, (entry.bodies or 0) - 1 do
      local body = redis.call('HGET', bodies, part == 0 and key or key .. digits(part) .. '\1')
      path = path or (body and disturbed(cjson.decode(body), request.quiet))
    end
    if path then
      return {'refused', 'quiet', path}
    end
  end
end

-- Counters stay below their ceilings.
local counters = meta and meta.n or {}
for _, counter in ipairs(request.counters or {}) do
  local name, add, ceiling = counter[1], counter[2], counter[3]
  local used = counters[name] or 0
  if ceiling and add > 0 and used + add > ceiling then
    return {'ceiling', name, used}
  end
end

-- Nothing can refuse a write later: neither the kind of the keys nor the rights of the user.
local function is(key, kind)
  local found = redis.call('TYPE', key).ok
  return found == kind or found == 'none'
end
if not (is(bodies, 'hash') and is(index, 'zset') and (meta or is(partitions, 'zset'))) then
  return redis.error_reply('WRONGTYPE a key of the partition holds another kind of value')
end
local deletes = request.deletes or {}
local may = redis.acl_check_cmd
if not (may('HSET', values, '', '') and may('HSET', bodies, '', '') and may('HDEL', bodies, '')
    and may('ZADD', index, 0, '') and (meta or may('ZADD', partitions, 0, ''))
    and (not deletes[1] or (may('HDEL', values, '') and may('ZREM', index, '')))) then
  return redis.error_reply('NOPERM the user may not change the keys of the partition')
end

-- Prepare what is written.
local created = meta == nil
local sequence = last + 1
local at = math.max(request.now, meta and meta.at or 0)
local number = digits(sequence)
local stamp = struct.pack('>I8I8', sequence, at)

meta = meta or {inc = request.id, fmt = request.format}
meta.seq, meta.at, meta.n = sequence, at, counters
for _, counter in ipairs(request.counters or {}) do
  counters[counter[1]] = (counters[counter[1]] or 0) + counter[2]
end
if request.protects then
  meta.epoch = (meta.epoch or 0) + 1
end
if request.sweeping_to then
  meta.swept = math.max(meta.swept or 0, request.sweeping_to)
end

local head = cjson.encode(meta)
local records, held, members, bare = {META, stamp .. head}, {}, {}, {}
local argument = 4
for n, key in ipairs(request.puts) do
  if string.find(key, '\4', 1, true) then
    key = string.gsub(key, '\4', number)
  end
  records[#records + 1] = key
  records[#records + 1] = stamp .. ARGV[argument]
  argument = argument + 1
  local before = request.before[n]
  if before ~= THERE then
    members[#members + 1] = 0
    members[#members + 1] = key
  end
  local body = request.bodies[n]
  if body == true then
    body = ARGV[argument]
    argument = argument + 1
  elseif body then
    body = taken[body]
  end
  if body then
    held[#held + 1] = key
    held[#held + 1] = body
  elseif before ~= ABSENT then
    bare[#bare + 1] = key
  end
end

-- Write. The first write is one that a server without memory or without replicas refuses, before anything is changed. A key is
-- either deleted or put.
write('HSET', values, records)
if created then
  redis.call('ZADD', partitions, 0, ARGV[1])
  redis.call('ZADD', index, 0, META)
end
write('HDEL', values, deletes)
write('HDEL', bodies, deletes)
write('ZREM', index, deletes)
write('HDEL', bodies, bare)
write('HSET', bodies, held)
write('ZADD', index, members)
redis.pcall('PUBLISH', ARGV[2], number .. ':' .. ARGV[1])
return {'ok', sequence, at, head}
