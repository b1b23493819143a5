-- Drives stubs/lua/fanout.lua for the conformance test.
local fanout = require("fanout")

local function write(record)
	io.stdout:write(tostring(record), "\30")
	io.stdout:flush()
end

local function write_all(results)
	for _, result in ipairs(results) do
		write(result)
	end
end

local commands = {}

function commands.query(prompt, model)
	write(fanout.llm_query(prompt, model))
end

function commands.batch(...)
	write_all(fanout.llm_query_batch({ ... }))
end

commands["batch-model"] = function(model, ...)
	write_all(fanout.llm_query_batch({ ... }, model))
end

function commands.stream(...)
	for slot in fanout.llm_stream({ ... }) do
		write(("%d\31%s"):format(slot.index, slot.result))
	end
end

local SCHEMA = { type = "object", properties = { n = { type = "integer" } }, required = { "n" } }

function commands.json(prompt)
	write(("%d"):format(fanout.llm_query(prompt, { schema = SCHEMA }).n))
end

commands["batch-json"] = function(...)
	for _, value in ipairs(fanout.llm_query_batch({ ... }, { schema = SCHEMA })) do
		write(type(value) == "table" and ("%d"):format(value.n) or value)
	end
end

local TOOLS = { { type = "function", ["function"] = { name = "double", parameters = SCHEMA } } }
local MUST = { tools = TOOLS, params = { tool_choice = "required" } }

local function name_of(message)
	return message.tool_calls[1]["function"].name
end

function commands.message(model, prompt)
	local asked = fanout.llm_message(prompt, model, MUST)
	local result = { role = "tool", tool_call_id = asked.tool_calls[1].id, content = "8" }
	local messages = { { role = "user", content = prompt }, asked, result, { role = "user", content = "done" } }
	write(("%s\31%s"):format(name_of(asked), fanout.llm_message(messages, model).content))
end

function commands.messages(model, ...)
	for _, message in ipairs(fanout.llm_query_batch({ ... }, model, MUST)) do
		write(name_of(message))
	end
end

function commands.agent(model, tool, prompt)
	write(fanout.llm_message(prompt, model, { tools = { tool }, max_turns = 4 }).content)
end

function commands.dag(prompt)
	local graph = fanout.llm_dag({ { id = "a", prompt = prompt }, { id = "b", prompt = "{{a.output}} and two" } })
	write(graph.outputs.b)
end

function commands.vote(count, prompt)
	local vote = fanout.llm_vote(prompt, tonumber(count))
	write(("%s\31%d"):format(vote.winner, vote.votes))
end

function commands.budget()
	write(fanout.llm_budget().usd.remaining)
end

function commands.usage()
	write(fanout.llm_usage().llm_calls)
end

function commands.final(text)
	fanout.FINAL(text)
	write("ok")
end

function commands.log(event_type, name, value)
	fanout.llm_log(event_type, { [name] = value })
	write("ok")
end

function commands.tool(tool, name, value)
	write(fanout.tool_call(tool, { [name] = value }))
end

function commands.child(calls, ...)
	local prompts = { ... }
	fanout.with_run({ calls = tonumber(calls) }, function()
		for _, prompt in ipairs(prompts) do
			write(fanout.llm_query(prompt))
		end
	end)
end

function commands.nested(prompt)
	local function query()
		write(fanout.llm_query(prompt))
	end
	fanout.with_run({ calls = 4 }, function()
		query()
		fanout.with_run({ calls = 1 }, query)
		query()
	end)
	query()
end

-- Lua runs one thing at a time.
function commands.children(...)
	for _, prompt in ipairs({ ... }) do
		write(fanout.with_run({ calls = 1 }, function()
			return fanout.llm_query(prompt)
		end))
	end
end

local unpack = table.unpack or unpack
local good, failure = pcall(commands[arg[1]], unpack(arg, 2))
if not good then
	if type(failure) ~= "table" then
		error(failure, 0)
	end
	local used = (failure.attempts or "") .. "\31" .. (failure.charged_usd or "")
	write(("\21%s\31%s\31%s\31%s"):format(failure.code, failure.status or "", tostring(failure.retryable), used))
end
