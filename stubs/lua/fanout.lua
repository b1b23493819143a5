-- Calls a fanout gateway from Lua 5.1 to 5.4 or LuaJIT, on a POSIX system.
--
-- One file, which needs the program `curl`: copy it into the sandbox.
--
--     local fanout = require("fanout")
--
--     local answer = fanout.llm_query("What is 2 + 2?")
--     local answers = fanout.llm_query_batch(prompts, "some-model", { max_tokens = 200 })
--     for slot in fanout.llm_stream(prompts) do print(slot.index, slot.result) end
--     fanout.with_run({ usd = 0.05 }, function() -- Calls in this function can spend 0.05 USD at most.
--       answers = fanout.llm_query_batch(prompts)
--     end)
--     fanout.FINAL(fanout.tool_call("search", { query = "fanout" }))
--
-- Environment variables:
--     FANOUT_URL        the gateway's address (default http://127.0.0.1:8787); or GATEWAY_URL
--     FANOUT_TOKEN      the run token, which POST /runs returned; or GATEWAY_TOKEN
--     FANOUT_TIMEOUT_S  how long a whole call may take before it fails (default 3600)
--
-- The model may be left out. Options are sent as the request fields of their names. `idempotency_key` is sent as a
-- header instead: a restarted program that repeats the call under the same key gets the recorded answer at no cost. If
-- the connection is lost, the request is repeated under the same key and is paid once. All other retries happen in the
-- gateway.
--
-- A call that fails raises a table: `message`; `code`, which is the gateway's or `no_token`, `bad_url`, `unreachable`,
-- `timeout`, `bad_answer`, `tool_error`; `status`, nil if there was no answer; `retryable`;
-- `attempts` and `charged_usd`, what a call has used up that was made, else nil.
--
-- A null of JSON is `fanout.null`. An empty table is sent as an object, unless it is an array of an answer.

local fanout = {}

fanout.null = setmetatable({}, {
	__tostring = function()
		return "null"
	end,
})

-- The waits before a request whose connection was lost is repeated.
local RETRY_WAITS_S = { 0.25, 0.5, 1, 2 }

local BUDGET_FIELDS = { "usd", "calls", "prompt_tokens", "completion_tokens" }

-- What curl ends with if a call took longer than --max-time.
local CURL_TIMED_OUT = 28

-- Failures

local failures = {
	__tostring = function(failure)
		return tostring(failure.message)
	end,
}

local function fail(message, code, status, retryable, used)
	local failure = { message = message, code = code, status = status, retryable = retryable == true }
	failure.attempts, failure.charged_usd = used and used.attempts, used and used.charged_usd
	error(setmetatable(failure, failures), 0)
end

-- JSON

local encode

local function encode_string(text)
	local function escape(char)
		return ("\\u%04x"):format(char:byte())
	end
	return '"' .. text:gsub('[%c"\\]', escape) .. '"'
end

local function encode_number(number)
	local is_integer = number % 1 == 0 and math.abs(number) < 1e15
	return (is_integer and "%d" or "%.17g"):format(number)
end

-- Arrays of answers are known by their metatable: empty ones stay arrays.
local ARRAY = {}

local function encode_table(value)
	local parts = {}
	if #value > 0 or getmetatable(value) == ARRAY then
		for index, item in ipairs(value) do
			parts[index] = encode(item)
		end
		return "[" .. table.concat(parts, ",") .. "]"
	end
	for name, item in pairs(value) do
		table.insert(parts, encode_string(tostring(name)) .. ":" .. encode(item))
	end
	table.sort(parts) -- A restarted program sends the same bytes under its key.
	return "{" .. table.concat(parts, ",") .. "}"
end

function encode(value)
	local kind = type(value)
	if kind == "string" then
		return encode_string(value)
	end
	if kind == "number" then
		return encode_number(value)
	end
	if kind == "table" and value ~= fanout.null then
		return encode_table(value)
	end
	return tostring(value)
end

-- The UTF-8 bytes of an escape's hexadecimal code, or of the two codes of a surrogate pair.
local function utf8_bytes(high, low)
	local code = tonumber(high, 16)
	if low then
		code = 0x10000 + (code - 0xD800) * 0x400 + tonumber(low, 16) - 0xDC00
	end
	if code < 0x80 then
		return string.char(code)
	end
	local tail = ""
	local first_limit = 64 -- What the first byte has room for.
	repeat
		tail = string.char(0x80 + code % 64) .. tail
		code = math.floor(code / 64)
		first_limit = first_limit / 2
	until code < first_limit
	return string.char(256 - 2 * first_limit + code) .. tail
end

local function unescape(raw)
	local simple = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }
	local text = raw:gsub("\\\\", "\\u005c") -- From here on each backslash begins an escape.
	text = text:gsub("\\([bfnrt])", simple)
	text = text:gsub("\\([^u])", "%1")
	text = text:gsub("\\u([dD][89abAB]%x%x)\\u([dD][c-fC-F]%x%x)", utf8_bytes)
	text = text:gsub("\\u[dD][89a-fA-F]%x%x", "\239\191\189") -- Half of a pair is no character.
	text = text:gsub("\\u(%x%x%x%x)", utf8_bytes)
	return text
end

local decode

local function decode_string(text, at)
	local stop = text:find('["\\]', at + 1)
	while text:sub(stop, stop) == "\\" do
		stop = text:find('["\\]', stop + 2)
	end
	return unescape(text:sub(at + 1, stop - 1)), stop + 1
end

local function decode_word(text, at)
	local word = text:match("^[%w+.-]+", at)
	local stop = at + #word
	if word == "null" then
		return fanout.null, stop
	end
	if word == "true" or word == "false" then
		return word == "true", stop
	end
	return assert(tonumber(word)), stop
end

local function decode_container(text, at)
	local is_object = text:sub(at, at) == "{"
	local result = is_object and {} or setmetatable({}, ARRAY)
	local close = is_object and "}" or "]"
	local name = 0
	at = text:find("%S", at + 1)
	while text:sub(at, at) ~= close do
		if is_object then
			name, at = decode(text, at)
			at = text:match("^%s*:()", at)
		else
			name = name + 1
		end
		result[name], at = decode(text, at)
		at = text:match("^%s*,%s*()", at) or text:match("^%s*()%" .. close, at)
	end
	return result, at + 1
end

-- Returns the JSON value that begins at a position, and the position after it. Raises anything if there is no value.
function decode(text, at)
	at = text:find("%S", at)
	local first = text:sub(at, at)
	if first == '"' then
		return decode_string(text, at)
	end
	if first == "{" or first == "[" then
		return decode_container(text, at)
	end
	return decode_word(text, at)
end

-- Returns the object in an answer, which has the field `expects`. Raises the failure that the answer reports.
local function parse(text, status, expects)
	local is_json, answer = pcall(decode, text, 1)
	local is_object = is_json and type(answer) == "table"
	local failure = is_object and answer.error or fanout.null
	local http_status = status >= 400 and status or nil
	if type(failure) == "string" then
		fail(failure, "tool_error", http_status, status == 408 or status == 503)
	end
	if failure ~= fanout.null then
		fail(failure.message, failure.code, http_status or failure.status, failure.retryable, failure)
	end
	if is_object and status < 300 and answer[expects] ~= nil then
		return answer
	end
	return fail(("HTTP %d, unexpected answer: %s"):format(status, text:sub(1, 200)), "bad_answer", http_status)
end

-- Requests

-- The tokens of child runs by the coroutine whose scopes they are.
local tokens = setmetatable({}, { __mode = "k" })

local MAIN = {}

-- The main program is no coroutine in Lua 5.1.
local function current_coroutine()
	return coroutine.running() or MAIN
end

local function setting(name)
	for _, prefix in ipairs({ "FANOUT_", "GATEWAY_" }) do
		local value = (os.getenv(prefix .. name) or ""):match("%S+")
		if value then
			return value
		end
	end
end

local function current_token()
	return tokens[current_coroutine()] or setting("TOKEN")
end

local function fresh_key()
	local random = io.popen("od -An -N16 -tx1 /dev/urandom")
	local key = random:read("*a"):gsub("%s", "")
	random:close()
	return key
end

-- The name of this life of the program, so that a run that records can replay the one before.
local epoch

-- curl reads the token and the body from here documents: all users of the machine can see a command line.
local SCRIPT = [[
rm -f "$0"
curl -qgsN -K - -m '%s' -w '\n%%{http_code}' --noproxy "localhost,127.0.0.1,::1,${NO_PROXY:-$no_proxy}" -H expect: \
  -H 'content-type: application/json' -H 'accept: application/%s' %s '%s%s' <<'.' 3<<'.' 2>/dev/null
header = "authorization: Bearer %s"
.
%s
.
echo " $?"
]]

-- The shell script that sends a request once.
local function script_of(request, accept)
	-- With the /v1 that OpenAI's clients want, it is the same gateway.
	local base = (setting("URL") or "http://127.0.0.1:8787"):gsub("/$", ""):gsub("/v1$", "")
	local timeout_s = setting("TIMEOUT_S") or "3600"
	if not base:find("^https?://[^/]") then
		fail("FANOUT_URL is not an http(s) address: " .. base, "bad_url")
	end
	if not request.token then
		fail("FANOUT_TOKEN is not set: it is the run token", "no_token")
	end
	local quoted = base .. request.path .. request.token .. timeout_s .. (request.key or "")
	assert(
		not quoted:find("[^%w._~:/?%[%]+=@-]"),
		"the address, the token, the key or the timeout has a wrong character"
	)
	epoch = epoch or fresh_key()
	local arguments = "-H 'x-fanout-epoch: " .. epoch .. "'"
	if request.body then
		arguments = arguments .. " --data-binary @/dev/fd/3"
	end
	if request.key then
		arguments = arguments .. " -H 'idempotency-key: " .. request.key .. "'"
	end
	return SCRIPT:format(timeout_s, accept, arguments, base, request.path, request.token, request.body or "")
end

-- Sends a request once. Returns what curl ended with, the status, and the text without the lines that `on_line` took.
local function exchange(request, on_line)
	local script = script_of(request, on_line and "x-ndjson" or "json")
	local name = os.tmpname() -- The C library creates it for this user alone.
	local file = assert(io.open(name, "wb"))
	file:write(script)
	file:close()
	local pipe = io.popen("sh '" .. name .. "'")
	local lines = {}
	for line in pipe:lines() do
		local taken = on_line and on_line(line)
		if not taken then
			table.insert(lines, line)
		end
	end
	pipe:close()
	local text, status, exit = table.concat(lines, "\n"):match("^(.*)(%d%d%d) (%d+)$")
	return tonumber(exit or 1), tonumber(status), text
end

-- Sends a request, and repeats it under its key if the connection is lost. `is_completed` is of streams.
local function send(request, on_line, is_completed)
	local repeats = request.key and #RETRY_WAITS_S or 0
	for attempt = 0, repeats do
		local exit, status, text = exchange(request, on_line)
		if on_line and is_completed() then
			return text, status
		end
		local is_cut = exit == 0 and on_line and not text:find("%S")
		if exit == 0 and not is_cut then
			return text, status
		end
		local message = is_cut and "the stream was cut" or "curl ended with " .. exit
		if exit == CURL_TIMED_OUT then
			fail("no answer: " .. message, "timeout", nil, true)
		end
		if attempt == repeats then
			fail("no answer: " .. message, "unreachable", nil, true)
		end
		os.execute("sleep " .. RETRY_WAITS_S[attempt + 1])
	end
end

-- A request with the token of the current scope. The gateway recognises some requests by their key.
local function prepare(path, fields)
	local request = { path = path, token = current_token() }
	if not fields then
		return request
	end
	local is_repeatable = ("/query /batch /dag /runs"):find(path, 1, true) or path:find("/close$")
	if is_repeatable then
		request.key = fields.idempotency_key or fresh_key()
		fields.idempotency_key = nil
	end
	request.body = encode(fields)
	return request
end

-- Returns the answer, an object with the field `expects`.
local function call(path, fields, expects)
	local text, status = send(prepare(path, fields))
	return parse(text, status, expects)
end

-- Gives each slot once, although a repeated request streams all slots again.
local function stream(request, on_slot)
	local seen, is_completed = {}, false
	local function on_line(line)
		local is_json, event = pcall(decode, line, 1)
		local kind = is_json and type(event) == "table" and event.type
		if kind == "slot" and not seen[event.index] then
			seen[event.index] = true
			on_slot(event)
		end
		is_completed = is_completed or kind == "group_completed"
		return kind == "slot" or is_completed
	end
	local text, status = send(request, on_line, function()
		return is_completed
	end)
	if not is_completed then
		parse(text, status, "type")
	end
end

local function merge(fields, model, options)
	if type(model) == "table" then
		model, options = nil, model
	end
	for name, value in pairs(options or {}) do
		fields[name] = value
	end
	fields.model = model or fields.model
	return fields
end

-- The functions of the stub

-- Returns the answer to one prompt: a string, or an array of chat messages. With the option `schema` the answer is the
-- JSON value that fits it, in batches too.
function fanout.llm_query(prompt, model, options)
	local field = type(prompt) == "table" and "messages" or "prompt"
	local answer = call("/query", merge({ [field] = prompt }, model, options), "text")
	return answer.json == nil and answer.text or answer.json
end

-- Whether the tools are definitions for the model; tools of the run go by their names.
local function defines_tools(fields)
	for _, tool in ipairs(fields.tools or {}) do
		if type(tool) ~= "string" then
			return true
		end
	end
	return false
end

local function includes_message(fields)
	for _, member in ipairs(fields.include or {}) do
		if member == "message" then
			return true
		end
	end
	return false
end

-- The fields of a call that asks for the whole message.
local function asking(fields)
	if not includes_message(fields) then
		fields.include = { "message", (table.unpack or unpack)(fields.include or {}) }
	end
	if defines_tools(fields) then
		local params = { tools = fields.tools }
		for name, value in pairs(fields.params or {}) do
			params[name] = value
		end
		fields.params, fields.tools = params, nil
	end
	return fields
end

-- Returns the whole message of an answer: `content`, `tool_calls`, … With the option `tools` of a chat completion it
-- may ask for them: sent back as one of the messages, with their results, it goes on. Tools of the run go by their
-- names: the gateway calls them itself, and the message is the last of at most `max_turns` answers.
function fanout.llm_message(prompt, model, options)
	local field = type(prompt) == "table" and "messages" or "prompt"
	return call("/query", asking(merge({ [field] = prompt }, model, options)), "message").message
end

-- Returns the answers to many prompts, in the order of `prompts`, by one request. The result of a failed prompt is the
-- string "[error] message"; the other results are not affected. With `tools` of a chat completion, or
-- `include = { "message" }`, the answers are whole messages. Raises a failure only if the whole request fails.
function fanout.llm_query_batch(prompts, model, options)
	if #prompts == 0 then
		return {}
	end
	local fields = merge({ prompts = prompts }, model, options)
	if defines_tools(fields) then
		fields = asking(fields)
	end
	local name = includes_message(fields) and "message" or "json"
	local answer = call("/batch", fields, "results")
	local results = answer.results
	if #results ~= #prompts then
		fail(("sent %d prompts, got %d results"):format(#prompts, #results), "bad_answer", 200)
	end
	for index, slot in ipairs(answer.items) do
		if slot[name] ~= nil then
			results[index] = slot[name]
		end
	end
	return results
end

fanout.llm_query_batched = fanout.llm_query_batch
fanout.llm_batch = fanout.llm_query_batch

-- Iterates over the results of a batch as its slots end: a table with `index` (from 0), `result` and `error`
-- (`fanout.null` if the slot succeeded).
function fanout.llm_stream(prompts, model, options)
	if #prompts == 0 then
		return function() end
	end
	-- The iterator is a coroutine of its own: the token is that of this scope.
	local request = prepare("/batch", merge({ prompts = prompts }, model, options))
	return coroutine.wrap(function()
		stream(request, coroutine.yield)
	end)
end

-- Returns the answer of a graph, an array of tasks whose prompts refer to each other:
-- `{ id = "b", prompt = "{{a.output}} …" }`. The outputs of its last tasks are in `outputs`, by id.
function fanout.llm_dag(tasks, options)
	return call("/dag", merge({ tasks = tasks }, nil, options), "tasks")
end

-- Asks a prompt so many times. Returns the vote: `decided`, `winner`, `agreement`, … `aggregate` changes its rule.
function fanout.llm_vote(prompt, count, model, options)
	local fields = { prompts = {}, aggregate = { strategy = "vote" } }
	for index = 1, count or 3 do
		fields.prompts[index] = prompt
	end
	return call("/batch", merge(fields, model, options), "aggregation").aggregation
end

-- Opens a child run for a function: calls in the function spend the child's budget.
--
--     fanout.with_run({ usd = 0.05, calls = 20, name = "translate" }, function(run)
--       return fanout.llm_query_batch(prompts)
--     end)
--
-- `usd`, `calls`, `prompt_tokens` and `completion_tokens` are limits. They are reserved in the budget of the run around
-- the function; a limit that is left out becomes an equal split of what remains there. Other settings are the fields of
-- POST /runs: `name`, `max_parallel`, `models`, `default_model`, …
--
-- The function receives the child run's document with its `id` and its `token`; what it returns is returned. When it
-- ends, also by an error, the child run is closed and what it has not spent returns. Scopes nest. Each coroutine has
-- its own: a new coroutine starts outside of all scopes. In Lua 5.1 the function cannot yield out of its scope.
function fanout.with_run(settings, scope)
	local fields = merge({}, nil, settings)
	for _, name in ipairs(BUDGET_FIELDS) do
		if fields[name] then
			fields.budget = merge({ [name] = fields[name] }, nil, fields.budget)
			fields[name] = nil
		end
	end
	local run = call("/runs", fields, "token")
	local owner = current_coroutine()
	local outer = tokens[owner]
	tokens[owner] = run.token
	local function finish(is_good, ...)
		tokens[owner] = outer
		local is_closed, failure = pcall(call, "/runs/" .. run.id .. "/close", {}, "status")
		-- The function's own error matters more than that of the close.
		if not is_good then
			error((...), 0)
		end
		if not is_closed then
			error(failure, 0)
		end
		return ...
	end
	return finish(pcall(scope, run))
end

-- Returns what is left of the run's budget, child runs included: `usd`, `calls`, `prompt_tokens` and
-- `completion_tokens`, each with `limit`, `spent`, `reserved` and `remaining`.
function fanout.llm_budget()
	return call("/budget", nil, "usd")
end

-- Returns what the run itself has used since the last reset, child runs not included: `llm_calls`, `input_tokens`,
-- `output_tokens`, `cost` in USD, `calls_by_model`. What child runs spent is in `llm_budget()`.
function fanout.llm_usage(reset)
	return call(reset and "/usage?reset=1" or "/usage", nil, "llm_calls")
end

-- Appends an event to the run's log.
function fanout.llm_log(event_type, fields)
	call("/log", merge({ event_type = event_type }, nil, fields), "appended")
end

-- Returns the result of a tool of the run. Sent once, also if the connection is lost: a tool may have effects.
function fanout.tool_call(name, input)
	return call("/tool_call", { tool_name = name, input = input or {} }, "result").result
end

-- Records the program's result, any JSON value, as `final_result` in the run's log.
function fanout.FINAL(result)
	local output = type(result) == "string" and result or encode(result)
	fanout.llm_log("final_result", { output = output, data = result })
end

return fanout
