-- Drives stubs/lua/fanout.lua for the conformance test.
local fanout = require("fanout")

local function write(record)
  io.stdout:write(tostring(record), "\30")
  io.stdout:flush()
end

local function write_all(results)
  for _, result in ipairs(results) do write(result) end
end

local commands = {
  query = function(prompt, model) write(fanout.llm_query(prompt, model)) end,
  batch = function(...) write_all(fanout.llm_query_batch({ ... })) end,
  ["batch-model"] = function(model, ...) write_all(fanout.llm_query_batch({ ... }, model)) end,
  stream = function(...)
    for slot in fanout.llm_stream({ ... }) do write(("%d\31%s"):format(slot.index, slot.result)) end
  end,
  budget = function() write(fanout.llm_budget().usd.remaining) end,
  usage = function() write(fanout.llm_usage().llm_calls) end,
  final = function(text) fanout.FINAL(text) write("ok") end,
  log = function(event_type, name, value) fanout.llm_log(event_type, { [name] = value }) write("ok") end,
  tool = function(tool, name, value) write(fanout.tool_call(tool, { [name] = value })) end,
}

local unpack = table.unpack or unpack
local good, failure = pcall(commands[arg[1]], unpack(arg, 2))
if not good then
  if type(failure) ~= "table" then error(failure, 0) end
  write(("\21%s\31%s\31%s"):format(failure.code, failure.status or "", tostring(failure.retryable)))
end
