# Drives stubs/julia/Fanout.jl for the conformance test.
include(joinpath(@__DIR__, "../../../stubs/julia/Fanout.jl"))
using .Fanout

function write_record(record...)
    print(stdout, record..., '\x1e')
    flush(stdout)
end

const SCHEMA = Dict(
    "type" => "object",
    "properties" => Dict("n" => Dict("type" => "integer")),
    "required" => ["n"],
)

const TOOLS =
    [Dict("type" => "function", "function" => Dict("name" => "double", "parameters" => SCHEMA))]
const MUST = Dict("tool_choice" => "required")

name_of(message) = message["tool_calls"][1]["function"]["name"]

function message(model, prompt)
    asked = llm_message(prompt, model; tools = TOOLS, params = MUST)
    id = asked["tool_calls"][1]["id"]
    messages = [
        Dict("role" => "user", "content" => prompt),
        asked,
        Dict("role" => "tool", "tool_call_id" => id, "content" => "8"),
        Dict("role" => "user", "content" => "done"),
    ]
    write_record(name_of(asked), '\x1f', llm_message(messages, model)["content"])
end

function child(calls, prompts...)
    with_run(calls = parse(Int, calls)) do run
        foreach(prompt -> write_record(llm_query(prompt)), prompts)
    end
end

function nested(prompt)
    with_run(calls = 4) do run
        write_record(llm_query(prompt))
        with_run(run -> write_record(llm_query(prompt)), calls = 1)
        write_record(llm_query(prompt))
    end
    write_record(llm_query(prompt))
end

function children(prompts...)
    query(prompt) = with_run(run -> llm_query(prompt), calls = 1)
    foreach(write_record, asyncmap(query, prompts))
end

function main(command, args...)
    if command == "query"
        write_record(llm_query(args...))
    elseif command == "batch"
        foreach(write_record, llm_query_batch(args))
    elseif command == "batch-model"
        foreach(write_record, llm_query_batch(args[2:end], args[1]))
    elseif command == "stream"
        llm_stream(slot -> write_record(slot["index"], '\x1f', slot["result"]), args)
    elseif command == "json"
        write_record(llm_query(args[1]; schema = SCHEMA)["n"])
    elseif command == "batch-json"
        for value in llm_query_batch(args; schema = SCHEMA)
            write_record(value isa AbstractString ? value : value["n"])
        end
    elseif command == "message"
        message(args...)
    elseif command == "messages"
        answers = llm_query_batch(args[2:end], args[1]; tools = TOOLS, params = MUST)
        foreach(answer -> write_record(name_of(answer)), answers)
    elseif command == "agent"
        answer = llm_message(args[3], args[1]; tools = [args[2]], max_turns = 4)
        write_record(answer["content"])
    elseif command == "dag"
        second = Dict("id" => "b", "prompt" => "{{a.output}} and two")
        graph = llm_dag([Dict("id" => "a", "prompt" => args[1]), second])
        write_record(graph["outputs"]["b"])
    elseif command == "vote"
        vote = llm_vote(args[2], parse(Int, args[1]))
        write_record(vote["winner"], '\x1f', vote["votes"])
    elseif command == "budget"
        write_record(llm_budget()["usd"]["remaining"])
    elseif command == "usage"
        write_record(llm_usage()["llm_calls"])
    elseif command == "final"
        FINAL(args[1])
        write_record("ok")
    elseif command == "log"
        llm_log(args[1]; Symbol(args[2]) => args[3])
        write_record("ok")
    elseif command == "tool"
        write_record(tool_call(args[1], Dict(args[2] => args[3])))
    elseif command == "child"
        child(args...)
    elseif command == "nested"
        nested(args[1])
    elseif command == "children"
        children(args...)
    else
        error("no command $command")
    end
end

try
    main(ARGS...)
catch failure
    failure isa FanoutError || rethrow()
    status = something(failure.status, "")
    used = (something(failure.attempts, ""), '\x1f', something(failure.charged_usd, ""))
    write_record('\x15', failure.code, '\x1f', status, '\x1f', failure.retryable, '\x1f', used...)
end
