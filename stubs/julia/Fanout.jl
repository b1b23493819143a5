# Ask a fanout gateway from Julia 1.6 or newer. One file, standard library only: copy it into the sandbox.
# Not among the gateway's tests, for want of a Julia where they run: tried by hand on Julia 1.5 with Downloads 1.3 only.
#
#     include("Fanout.jl"); using .Fanout
#     answer = llm_query("What is 2 + 2?")                            # a string, or a vector of chat messages
#     answers = llm_query_batch(["Summarise: $page" for page in pages]; max_tokens = 200)  # or "[error] message"
#     llm_stream(prompts) do slot                                     # slots as they end; `index` from 0
#         println(slot["index"], " ", slot["result"])
#     end
#     llm_budget()["usd"]["remaining"], llm_usage()["cost"]           # llm_usage(reset = true) also counts anew
#     FINAL(tool_call("search", Dict("query" => "fanout")))           # also llm_log(event_type; output = "…")
#
# FANOUT_URL names the gateway (default http://127.0.0.1:8787), FANOUT_TOKEN carries the run token; GATEWAY_URL and
# GATEWAY_TOKEN stand in for them. FANOUT_TIMEOUT_S is the longest that a call may take (3600): Downloads, which drives
# libcurl, has no other measure. A keyword is sent as the request field of that name; but `idempotency_key` names the
# call, so that a restarted program finds the answers that it has paid for. A call that spends is sent again under its
# key when the connection breaks; nothing else is.
module Fanout
using Downloads, Random
export FanoutError, llm_query, llm_query_batch, llm_query_batched, llm_batch, llm_stream
export llm_budget, llm_usage, llm_log, tool_call, FINAL
struct FanoutError <: Exception
    message::String
    code::String # One of the gateway's, or no_token, bad_url, unreachable, timeout, bad_answer.
    status::Union{Int,Nothing} # The HTTP status, where there was an answer.
    retryable::Bool
end
Base.showerror(io::IO, failure::FanoutError) = print(io, "FanoutError (", failure.code, "): ", failure.message)
fail(message, code, status = nothing, retryable = false) = throw(FanoutError(message, code, status, retryable))

function llm_query(prompt, model = nothing; options...)::String
    asked = prompt isa AbstractString ? "prompt" : "messages"
    return call("/query", merged(options, asked => prompt, "model" => model), "text")["text"]
end

function llm_query_batch(prompts, model = nothing; options...)::Vector{String}
    isempty(prompts) && return String[]
    body = merged(options, "prompts" => collect(prompts), "model" => model)
    results = call("/batch", body, "results")["results"]
    length(results) == length(prompts) || fail("there is not one result for each prompt", "bad_answer", 200)
    return [result isa AbstractString ? result : json(result) for result in results]
end
const llm_query_batched = llm_query_batch
const llm_batch = llm_query_batch

function llm_stream(on_slot, prompts, model = nothing; options...)
    body = merged(options, "prompts" => collect(prompts), "model" => model)
    isempty(prompts) || call("/batch", body, "id", on_slot)
    return nothing
end
llm_budget() = call("/budget", nothing, "usd")
llm_usage(; reset = false) = call(reset ? "/usage?reset=1" : "/usage", nothing, "llm_calls")
llm_log(event_type; fields...) = call("/log", merged(fields, "event_type" => event_type), "seq")
tool_call(name, input = Dict()) = call("/tool_call", Dict("tool_name" => name, "input" => input), "result")["result"]
FINAL(x) = llm_log("final_result"; output = x isa AbstractString ? x : json(x), data = x)
merged(options, fields...) = Dict{String,Any}(
    string(name) => value for (name, value) in [fields..., pairs(options)...] if value !== nothing)

function call(path, body, wanted, on_slot = nothing)
    spends = path in ("/query", "/batch")
    key = spends ? pop!(body, "idempotency_key", bytes2hex(rand(RandomDevice(), UInt8, 16))) : nothing
    given, completed = Set(), false
    function on_line(line)
        event = try parsed(line) catch; nothing end
        kind = event isa Dict ? get(event, "type", nothing) : nothing
        kind == "slot" && !(event["index"] in given) && (push!(given, event["index"]); on_slot(event))
        completed |= kind == "group_completed"
        return kind == "slot" || completed
    end
    for wait_s in (spends ? (0.25, 0.5, 1, 2, nothing) : (nothing,))
        reply, text = exchange(path, body, key, on_slot === nothing ? nothing : on_line)
        completed && return nothing
        lost = reply isa RequestError || (on_slot !== nothing && isempty(strip(text)))
        lost || return understood(text, reply.status, wanted)
        message = reply isa RequestError ? "no answer: $(reply.message)" : "the stream was cut"
        reply isa RequestError && reply.code == 28 && fail(message, "timeout", nothing, true) # CURLE_OPERATION_TIMEDOUT
        wait_s === nothing && fail(message, "unreachable", nothing, true)
        sleep(wait_s)
    end
end

function exchange(path, body, key, on_line)
    base, token = rstrip(setting("URL", "http://127.0.0.1:8787"), '/'), setting("TOKEN", "")
    isempty(token) && fail("FANOUT_TOKEN, the run token, is not set", "no_token")
    occursin(r"^https?://[^/\s]\S*$", base) || fail("FANOUT_URL is no http(s) address: $base", "bad_url")
    any(iscntrl, "$token$key") && throw(ArgumentError("no header can carry that token or that key"))
    headers = ["authorization" => "Bearer $token", "content-type" => "application/json"]
    on_line === nothing || push!(headers, "accept" => "application/x-ndjson")
    key === nothing || push!(headers, "idempotency-key" => key)
    downloader = Downloader()
    downloader.easy_hook = (easy, _) -> for (name, value) in (
            :CURLOPT_FOLLOWLOCATION => 0, # The token goes to no other host.
            :CURLOPT_LOW_SPEED_TIME => 0, # It would take a long wait for a failure.
            :CURLOPT_NOPROXY => occursin(r"^https?://(localhost|127\.|\[::1\])", base) ? "*" : nothing)
        value === nothing || Downloads.Curl.curl_easy_setopt(easy.handle, getproperty(Downloads.Curl, name), value)
    end
    output, rest = Base.BufferStream(), String[]
    sent = body === nothing ? (method = "GET",) : (method = "POST", input = IOBuffer(json(body)))
    timeout = parse(Float64, setting("TIMEOUT_S", "3600"))
    ask() = Downloads.request(base * path; headers, output, timeout, downloader, throw = false, sent...)
    asking = @async try ask() finally close(output) end
    foreach(line -> on_line !== nothing && on_line(line) || push!(rest, line), eachline(output))
    return fetch(asking), join(rest, '\n')
end
setting(name, default) =
    something(filter(!isempty, [strip(get(ENV, prefix * name, "")) for prefix in ("FANOUT_", "GATEWAY_")])..., default)
function understood(text, status, wanted)
    answer = try parsed(text) catch; nothing end
    error = answer isa Dict ? get(answer, "error", nothing) : nothing
    answer isa Dict && status < 300 && error === nothing && haskey(answer, wanted) && return answer
    refused = status < 400 ? nothing : status
    error isa AbstractString && fail(error, "tool_error", refused, status in (408, 503))
    error isa Dict || fail("HTTP $status: $(first(text, 200))", "bad_answer", refused)
    fail(error["message"], error["code"], something(refused, get(error, "status", nothing), Some(nothing)),
        get(error, "retryable", false) == true)
end
json(value::Union{Nothing,Missing}) = "null"
json(value::Real) = isfinite(value) ? string(value) : throw(ArgumentError("JSON has no $value"))
json(value::Union{AbstractVector,Tuple}) = "[" * join(map(json, value), ",") * "]"
json(value::Union{AbstractDict,NamedTuple}) =
    "{" * join((json(string(name)) * ":" * json(item) for (name, item) in pairs(value)), ",") * "}"
json(value) = "\"" * replace(string(value), r"[\x00-\x1f\"\\]" => c -> "\\u00" * bytes2hex([UInt8(c[1])])) * "\""
const ESCAPE = r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\."
const SIMPLE = Dict("\\b" => "\b", "\\f" => "\f", "\\n" => "\n", "\\r" => "\r", "\\t" => "\t")
const TOKEN = r"\"(?:[^\"\\]++|\\.)*+\"|[][{}:,]|[^][{}:,\"\s]+"
function parsed(text)
    tokens = Iterators.Stateful(found.match for found in eachmatch(TOKEN, text))
    value = parsed(tokens, popfirst!(tokens))
    return isempty(tokens) ? value : error("more than one value")
end
function parsed(tokens, token)
    token[1] == '"' && return replace(chop(token, head = 1), ESCAPE => unescaped)
    token in ("null", "true", "false") && return token == "null" ? nothing : token == "true"
    token in ("{", "[") || return something(tryparse(Int, token), Some(parse(Float64, token)))
    collected = token == "{" ? Dict{String,Any}() : Any[]
    while !((next = popfirst!(tokens)) in ("}", "]"))
        next == "," && (next = popfirst!(tokens))
        value = parsed(tokens, next)
        token == "[" && push!(collected, value)
        token == "{" && popfirst!(tokens) == ":" && (collected[value] = parsed(tokens, popfirst!(tokens)))
    end
    return collected
end
function unescaped(escape)
    escape[2] == 'u' || return get(SIMPLE, escape, escape[2:2])
    codes = parse.(Int, split(escape, "\\u", keepempty = false), base = 16)
    length(codes) == 2 && return string(Char(0x10000 + (codes[1] - 0xd800) * 0x400 + codes[2] - 0xdc00))
    return 0xd800 <= codes[1] < 0xe000 ? "\ufffd" : string(Char(codes[1])) # Half of a pair is no character.
end
end
