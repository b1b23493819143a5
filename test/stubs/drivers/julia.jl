# Drives stubs/julia/Fanout.jl for the conformance test.
include(joinpath(@__DIR__, "../../../stubs/julia/Fanout.jl"))
using .Fanout

write_record(record...) = (print(stdout, record..., '\x1e'); flush(stdout))

function main(command, args...)
    if command == "query"
        write_record(llm_query(args...))
    elseif command == "batch"
        foreach(write_record, llm_query_batch(args))
    elseif command == "batch-model"
        foreach(write_record, llm_query_batch(args[2:end], args[1]))
    elseif command == "stream"
        llm_stream(slot -> write_record(slot["index"], '\x1f', slot["result"]), args)
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
    else
        error("no command $command")
    end
end

try
    main(ARGS...)
catch failure
    failure isa FanoutError || rethrow()
    write_record('\x15', failure.code, '\x1f', something(failure.status, ""), '\x1f', failure.retryable)
end
