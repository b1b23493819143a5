-- Ask a fanout gateway from Lua 5.1 to 5.4 or LuaJIT, on a POSIX system. One file, which needs the program `curl`.
--     local fanout = require("fanout")
--     local answer = fanout.llm_query("What is 2 + 2?", "a-model", { max_tokens = 200 })     -- or an array of messages
--     local answers = fanout.llm_query_batch(prompts)            -- in their order; a failed one is "[error] message"
--     for slot in fanout.llm_stream(prompts) do print(slot.index, slot.result) end     -- as they end; `index` from 0
--     print(fanout.llm_budget().usd.remaining, fanout.llm_usage().cost)         -- llm_usage(true) also counts anew
--     fanout.FINAL(fanout.tool_call("search", { query = "fanout" }))            -- also llm_log(event_type, fields)
-- FANOUT_URL names the gateway (default http://127.0.0.1:8787), FANOUT_TOKEN carries the run token; GATEWAY_URL and
-- GATEWAY_TOKEN stand in for them. FANOUT_TIMEOUT_S is the longest that a call may take (3600). An option is sent as
-- the request field of that name; but `idempotency_key` names the call, so that a restarted program finds the answers
-- that it has paid for. A call that spends is sent again under its key when the connection breaks; nothing else is.
-- An error's value is a table: `message`; `code`, one of the gateway's, or no_token, bad_url, unreachable, timeout,
-- bad_answer; `status`, nil where there was no answer; `retryable`. A null is `fanout.null`, an empty table an object.
local fanout = { null = setmetatable({}, { __tostring = function() return "null" end }) }
local failures = { __tostring = function(failure) return tostring(failure.message) end }
local function fail(message, code, status, retryable)
  error(setmetatable({ message = message, code = code, status = status, retryable = retryable == true }, failures), 0)
end

local function json(value)
  local kind, parts = type(value), {}
  local function escaped(char) return ("\\u%04x"):format(char:byte()) end
  if kind == "string" then return '"' .. value:gsub('[%c"\\]', escaped) .. '"' end
  if kind == "number" then return (value % 1 == 0 and math.abs(value) < 1e15 and "%d" or "%.17g"):format(value) end
  if kind ~= "table" or value == fanout.null then return tostring(value) end
  for index, item in ipairs(value) do parts[index] = json(item) end
  if #parts > 0 then return "[" .. table.concat(parts, ",") .. "]" end
  for name, item in pairs(value) do parts[#parts + 1] = json(tostring(name)) .. ":" .. json(item) end
  table.sort(parts) -- A restarted program sends the same bytes under its key.
  return "{" .. table.concat(parts, ",") .. "}"
end
local function utf8_of(hex, low)
  local code, tail, room = tonumber(hex, 16), "", 64
  if low then code = (code - 0xD800) * 0x400 + tonumber(low, 16) - 0xDC00 + 0x10000 end
  if code < 0x80 then return string.char(code) end
  repeat tail, code, room = string.char(0x80 + code % 64) .. tail, math.floor(code / 64), room / 2 until code < room
  return string.char(256 - 2 * room + code) .. tail
end
local function unescaped(raw)
  raw = raw:gsub("\\\\", "\\u005c") -- From here on each backslash begins an escape.
  raw = raw:gsub("\\([bfnrt])", { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }):gsub("\\([^u])", "%1")
  raw = raw:gsub("\\u([dD][89abAB]%x%x)\\u([dD][c-fC-F]%x%x)", utf8_of)
  raw = raw:gsub("\\u[dD][89a-fA-F]%x%x", "\239\191\189") -- Half of a pair is no character.
  return (raw:gsub("\\u(%x%x%x%x)", utf8_of))
end
-- The JSON value that begins at `at`, and where it ends. Raises anything where there is none.
local function decode(text, at)
  at = text:find("%S", at)
  local first, result, name = text:sub(at, at), {}, 0
  if first == '"' then
    local stop = text:find('["\\]', at + 1)
    while text:byte(stop) == 92 do stop = text:find('["\\]', stop + 2) end
    return unescaped(text:sub(at + 1, stop - 1)), stop + 1
  elseif first ~= "{" and first ~= "[" then
    local word = text:match("^[%w+.-]+", at)
    if word == "null" then return fanout.null, at + 4 end
    return word == "true" or word ~= "false" and assert(tonumber(word)), at + #word
  end
  local close = first == "{" and "}" or "]"
  at = text:find("%S", at + 1)
  while text:sub(at, at) ~= close do
    if first == "{" then name, at = decode(text, at) else name = name + 1 end
    result[name], at = decode(text, first == "{" and text:match("^%s*:()", at) or at)
    at = text:match("^%s*,%s*()", at) or text:match("^%s*()%" .. close, at)
  end
  return result, at + 1
end
local function understood(text, status, wanted)
  local good, answer = pcall(decode, text, 1)
  local failure = good and type(answer) == "table" and answer.error or fanout.null
  if good and failure == fanout.null and status < 300 and answer[wanted] ~= nil then return answer end
  if type(failure) == "string" then fail(failure, "tool_error", status, status == 408 or status == 503) end
  if failure == fanout.null then fail(("HTTP %d: %s"):format(status, text:sub(1, 200)), "bad_answer", status) end
  fail(failure.message, failure.code, status >= 400 and status or failure.status, failure.retryable)
end
local function setting(name)
  return (os.getenv("FANOUT_" .. name) or ""):match("%S+") or (os.getenv("GATEWAY_" .. name) or ""):match("%S+")
end
local SCRIPT = [[rm -f "$0" # The token and the prompts are on no command line: those can be seen by everybody.
curl -qgsN -K - -m '%s' -w '\n%%{http_code}' --noproxy "localhost,127.0.0.1,::1,${NO_PROXY:-$no_proxy}" -H expect: \
  -H 'content-type: application/json' -H 'accept: application/%s' %s '%s%s' <<'.' 3<<'.' 2>/dev/null
header = "authorization: Bearer %s"
.
%s
.
echo " $?"]]
local function exchange(path, body, key, on_line) -- One try. The lines that `on_line` takes are not of its result.
  local base, longest_s, lines = setting("URL") or "http://127.0.0.1:8787", setting("TIMEOUT_S") or "3600", {}
  local token = setting("TOKEN") or fail("FANOUT_TOKEN, the run token, is not set", "no_token")
  if not base:find("^https?://[^/]") then fail("FANOUT_URL is no http(s) address: " .. base, "bad_url") end
  assert(not (base .. token .. longest_s .. (key or "")):find("[^%w._~:/%[%]+=@-]"), "no quote shall end early")
  local sent = body and "--data-binary @/dev/fd/3 " .. (key and "-H 'idempotency-key: " .. key .. "'" or "") or ""
  local name = os.tmpname() -- The C library makes it for this user alone.
  local file, accept = assert(io.open(name, "wb")), on_line and "x-ndjson" or "json"
  file:write(SCRIPT:format(longest_s, accept, sent, base:gsub("/$", ""), path, token, body or ""))
  file:close()
  local pipe = io.popen("sh '" .. name .. "'")
  for line in pipe:lines() do if not (on_line and on_line(line)) then lines[#lines + 1] = line end end
  pipe:close()
  local text, status, exit = table.concat(lines, "\n"):match("^(.*)(%d%d%d) (%d+)$")
  return tonumber(exit or 1), tonumber(status), text
end
local function call(path, body, wanted, on_slot)
  local key, given, completed = nil, {}, false
  if path == "/query" or path == "/batch" then
    key = body.idempotency_key or io.popen("od -An -N16 -tx1 /dev/urandom"):read("*a"):gsub("%s", "")
    body.idempotency_key = nil
  end
  local function on_line(line)
    local good, event = pcall(decode, line, 1)
    local kind = good and type(event) == "table" and event.type
    if kind == "slot" and not given[event.index] then given[event.index] = on_slot(event) or true end
    completed = completed or kind == "group_completed"
    return kind == "slot" or completed
  end
  for _, wait_s in ipairs(key and { 0.25, 0.5, 1, 2, 0 } or { 0 }) do
    local exit, status, text = exchange(path, body and json(body), key, on_slot and on_line)
    local cut = exit ~= 0 or on_slot and not text:find("%S")
    if completed or not cut then return completed or understood(text, status, wanted) end
    if exit == 28 or wait_s == 0 then fail("curl: " .. exit, exit == 28 and "timeout" or "unreachable", nil, true) end
    os.execute("sleep " .. wait_s)
  end
end
local function merged(fields, model, options)
  for name, value in pairs(options or {}) do fields[name] = value end
  fields.model = model or fields.model
  return fields
end
function fanout.llm_query(prompt, model, options)
  local asked = { [type(prompt) == "table" and "messages" or "prompt"] = prompt }
  return call("/query", merged(asked, model, options), "text").text
end
function fanout.llm_query_batch(prompts, model, options)
  if #prompts == 0 then return {} end
  local results = call("/batch", merged({ prompts = prompts }, model, options), "results").results
  return #results == #prompts and results or fail("too few results", "bad_answer", 200)
end
fanout.llm_query_batched, fanout.llm_batch = fanout.llm_query_batch, fanout.llm_query_batch
function fanout.llm_stream(prompts, model, options)
  local body = merged({ prompts = prompts }, model, options)
  return coroutine.wrap(function() if #prompts > 0 then call("/batch", body, "id", coroutine.yield) end end)
end
function fanout.llm_budget() return call("/budget", nil, "usd") end
function fanout.llm_usage(reset) return call(reset and "/usage?reset=1" or "/usage", nil, "llm_calls") end
function fanout.llm_log(event_type, fields) call("/log", merged({ event_type = event_type }, nil, fields), "seq") end
function fanout.tool_call(name, input)
  return call("/tool_call", { tool_name = name, input = input or {} }, "result").result
end
function fanout.FINAL(x) fanout.llm_log("final_result", { output = type(x) == "string" and x or json(x), data = x }) end
return fanout
