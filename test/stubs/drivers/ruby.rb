# frozen_string_literal: true

# Drives stubs/ruby/fanout.rb for the conformance test.
require_relative "../../../stubs/ruby/fanout"
include Fanout # rubocop:disable Style/MixinUsage

def write(record)
  $stdout.binmode.write("#{record}\x1e".b)
  $stdout.flush
end

SCHEMA = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] }.freeze

PARAMETERS = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] }.freeze
TOOLS = [{ type: "function", function: { name: "double", parameters: PARAMETERS } }].freeze
MUST = { tool_choice: "required" }.freeze

def name_of(message)
  message["tool_calls"][0]["function"]["name"]
end

def message(model, prompt)
  asked = llm_message(prompt, model, tools: TOOLS, params: MUST)
  result = { role: "tool", tool_call_id: asked["tool_calls"][0]["id"], content: "8" }
  messages = [{ role: "user", content: prompt }, asked, result, { role: "user", content: "done" }]
  write("#{name_of(asked)}\x1f#{llm_message(messages, model)["content"]}")
end

def messages(model, prompts)
  llm_query_batch(prompts, model, tools: TOOLS, params: MUST).each { |message| write(name_of(message)) }
end

def dag(prompt)
  graph = llm_dag([{ id: "a", prompt: prompt }, { id: "b", prompt: "{{a.output}} and two" }])
  graph["outputs"]["b"]
end

def nested(prompt)
  with_run(calls: 4) do
    write(llm_query(prompt))
    with_run(calls: 1) { write(llm_query(prompt)) }
    write(llm_query(prompt))
  end
  write(llm_query(prompt))
end

def children(prompts)
  threads = prompts.map { |prompt| Thread.new { with_run(calls: 1) { llm_query(prompt) } } }
  threads.each { |thread| write(thread.value) }
end

command, *args = ARGV.map { |arg| arg.dup.force_encoding("UTF-8") }
begin
  case command
  when "query" then write(llm_query(*args))
  when "batch" then llm_query_batch(args).each { |result| write(result) }
  when "batch-model" then llm_query_batch(args.drop(1), args[0]).each { |result| write(result) }
  when "stream" then llm_stream(args) { |slot| write("#{slot["index"]}\x1f#{slot["result"]}") }
  when "json" then write(llm_query(args[0], schema: SCHEMA)["n"])
  when "batch-json" then llm_query_batch(args, schema: SCHEMA).each { |it| write(it.is_a?(Hash) ? it["n"] : it) }
  when "message" then message(*args)
  when "messages" then messages(args[0], args.drop(1))
  when "agent" then write(llm_message(args[2], args[0], tools: [args[1]], max_turns: 4)["content"])
  when "dag" then write(dag(args[0]))
  when "vote" then write(llm_vote(args[1], args[0].to_i).values_at("winner", "votes").join("\x1f"))
  when "budget" then write(llm_budget["usd"]["remaining"])
  when "usage" then write(llm_usage["llm_calls"])
  when "final" then FINAL(args[0]) && write("ok")
  when "log" then llm_log(args[0], args[1] => args[2]) && write("ok")
  when "tool" then write(tool_call(args[0], args[1] => args[2]))
  when "child" then with_run(calls: args[0].to_i) { args.drop(1).each { |prompt| write(llm_query(prompt)) } }
  when "nested" then nested(args[0])
  when "children" then children(args)
  else abort "no command #{command}"
  end
rescue FanoutError => e
  write("\x15#{e.code}\x1f#{e.status}\x1f#{e.retryable}\x1f#{e.attempts}\x1f#{e.charged_usd}")
end
