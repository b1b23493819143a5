# Calls a fanout gateway from Julia 1.6 or newer.
#
# One file, standard library only: copy it into the sandbox.
#
#     include("Fanout.jl")
#     using .Fanout
#
#     answer = llm_query("What is 2 + 2?")
#     answers = llm_query_batch(["Summarise: $page" for page in pages]; max_tokens = 200)
#     llm_stream(prompts, "some-model") do slot
#         println(slot["index"], " ", slot["result"])
#     end
#     with_run(usd = 0.05) do run # Calls in this block can spend 0.05 USD at most.
#         answers = llm_query_batch(["Translate: $page" for page in pages])
#     end
#     FINAL(tool_call("search", Dict("query" => "fanout")))
#
# Environment variables:
#     FANOUT_URL        the gateway's address (default http://127.0.0.1:8787); or GATEWAY_URL
#     FANOUT_TOKEN      the run token, which POST /runs returned; or GATEWAY_TOKEN
#     FANOUT_TIMEOUT_S  how long a whole call may take before it fails (default 3600)
#
# A keyword argument is sent as the request field of that name. `idempotency_key` is sent as
# a header instead: a restarted program that repeats the call under the same key gets the
# recorded answer at no cost. If the connection is lost, the request is repeated under the
# same key and is paid once. All other retries happen in the gateway.
#
# The gateway's own tests do not run this file: no package of Julia can be installed where
# they run. Run by hand on Julia 1.5 with Downloads 1.3, it passed them, without `llm_message`.

module Fanout

using Downloads
using Random

export FanoutError, llm_query, llm_query_batch, llm_query_batched, llm_batch, llm_stream
export llm_message, llm_dag, llm_vote, with_run, llm_budget, llm_usage, llm_log, tool_call, FINAL

# The waits before a request whose connection was lost is repeated.
const RETRY_WAITS_S = (0.25, 0.5, 1, 2)

# What libcurl reports if a call took longer than its timeout.
const CURLE_OPERATION_TIMEDOUT = 28

# The gateway recognises these requests by their idempotency key.
const REPEATABLE = r"^/(query|batch|dag|runs|runs/[^/]+/close)$"

const BUDGET_FIELDS = ("usd", "calls", "prompt_tokens", "completion_tokens")

# Names this life of the program, so that a run that records can replay the one before.
# Chosen with the first request: what is computed before may be precompiled.
const EPOCH = Ref("")

"""
    FanoutError

A failed call. `code` is the gateway's, or `no_token`, `bad_url`, `unreachable`, `timeout`,
`bad_answer`, `tool_error`; `status` is the HTTP status, or `nothing` if there was no
answer; `retryable` is whether the same call may succeed later; `attempts` and `charged_usd`
are what a call has used up that was made, else `nothing`.
"""
struct FanoutError <: Exception
    message::String
    code::String
    status::Union{Int, Nothing}
    retryable::Bool
    attempts::Union{Int, Nothing}
    charged_usd::Union{Float64, Nothing}
end

function Base.showerror(io::IO, failure::FanoutError)
    print(io, "FanoutError (", failure.code, "): ", failure.message)
end

function fail(message, code, status = nothing, retryable = false, used = (nothing, nothing))
    throw(FanoutError(message, code, status, retryable, used...))
end

"""
    llm_query(prompt, model = nothing; options...)

The answer to one prompt: a string, or a vector of chat messages. With `schema` the answer is
the JSON value that fits it, in batches too.
"""
function llm_query(prompt, model = nothing; options...)
    field = prompt isa AbstractString ? "prompt" : "messages"
    body = merged(options, field => prompt, "model" => model)
    answer = call("/query", body; expects = "text")
    return haskey(answer, "json") ? answer["json"] : answer["text"]
end

"""
    llm_message(prompt, model = nothing; options...)

The whole message of an answer, a `Dict` with `"content"`, `"tool_calls"`, … With `tools` of
a chat completion it may ask for them: sent back as one of the messages, with their results,
it goes on. Tools of the run go by their names: the gateway calls them itself, and the
message is the last of at most `max_turns` answers.
"""
function llm_message(prompt, model = nothing; options...)
    field = prompt isa AbstractString ? "prompt" : "messages"
    body = asking(merged(options, field => prompt, "model" => model))
    return call("/query", body; expects = "message")["message"]
end

"""
    llm_query_batch(prompts, model = nothing; options...)

The answers to many prompts, in the order of `prompts`, by one request. The result of a
failed prompt is the string `"[error] message"`; the other results are not affected. With
`tools` of a chat completion, or `include = ["message"]`, the answers are whole messages.
Throws only if the whole request fails.
"""
function llm_query_batch(prompts, model = nothing; options...)
    isempty(prompts) && return String[]
    body = merged(options, "prompts" => collect(prompts), "model" => model)
    body = defines_tools(body) ? asking(body) : body
    name = "message" in get(body, "include", ()) ? "message" : "json"
    answer = call("/batch", body; expects = "results")
    results = answer["results"]
    if length(results) != length(prompts)
        message = "sent $(length(prompts)) prompts, got $(length(results)) results"
        fail(message, "bad_answer", 200)
    end
    any(slot -> haskey(slot, name), answer["items"]) || return texts(results)
    return [get(slot, name, result) for (slot, result) in zip(answer["items"], results)]
end

texts(results) = String[result isa AbstractString ? result : json(result) for result in results]

const llm_query_batched = llm_query_batch
const llm_batch = llm_query_batch

"""
    llm_stream(on_slot, prompts, model = nothing; options...)

Calls a function with each result of a batch as its slot ends: a `Dict` with `"index"` (from
0), `"result"` and `"error"` (`nothing` if the slot succeeded).
"""
function llm_stream(on_slot, prompts, model = nothing; options...)
    isempty(prompts) && return nothing
    stream(on_slot, merged(options, "prompts" => collect(prompts), "model" => model))
    return nothing
end

"""
    llm_dag(tasks; options...)

The answer of a graph, a vector of tasks whose prompts refer to each other:
`Dict("id" => "b", "prompt" => "{{a.output}} …")`. The outputs of its last tasks are in
`"outputs"`, by id.
"""
function llm_dag(tasks; options...)
    return call("/dag", merged(options, "tasks" => collect(tasks)); expects = "tasks")
end

"""
    llm_vote(prompt, count = 3, model = nothing; options...)

Asks a prompt so many times: the vote, with `"decided"`, `"winner"`, `"agreement"`, …
`aggregate` changes its rule.
"""
function llm_vote(prompt, count = 3, model = nothing; options...)
    rule = "aggregate" => Dict("strategy" => "vote")
    body = merged(options, "prompts" => fill(prompt, count), "model" => model, rule)
    return call("/batch", body; expects = "aggregation")["aggregation"]
end

"""
    with_run(scope; settings...)

Opens a child run for a function: calls in the function spend the child's budget.

    answers = with_run(usd = 0.05, calls = 20, name = "translate") do run
        llm_query_batch(prompts)
    end

`usd`, `calls`, `prompt_tokens` and `completion_tokens` are limits. They are reserved in the
budget of the run around the function; a limit that is left out becomes an equal split of
what remains there. Other keywords are the fields of POST /runs: `name`, `max_parallel`,
`models`, `default_model`, …

The function receives the child run's document with its `"id"` and its `"token"`; its value
is returned. When it ends, also by an exception, the child run is closed and what it has not
spent returns. Scopes nest. Each task has its own: a new task starts outside of all scopes.
"""
function with_run(scope; settings...)
    run = open_run(settings)
    result = try
        task_local_storage(() -> scope(run), :fanout_child_token, run["token"])
    catch
        # The scope's own failure matters more than that of the close.
        try
            close_run(run)
        catch failure
            failure isa FanoutError || rethrow()
        end
        rethrow()
    end
    close_run(run)
    return result
end

"""
    llm_budget()

What is left of the run's budget, child runs included: `"usd"`, `"calls"`, `"prompt_tokens"`
and `"completion_tokens"`, each with `"limit"`, `"spent"`, `"reserved"` and `"remaining"`.
"""
llm_budget() = call("/budget"; expects = "usd")

"""
    llm_usage(; reset = false)

What the run itself has used since the last reset, child runs not included: `"llm_calls"`,
`"input_tokens"`, `"output_tokens"`, `"cost"` in USD, `"calls_by_model"`. What child runs
spent is in `llm_budget()`.
"""
function llm_usage(; reset = false)
    return call(reset ? "/usage?reset=1" : "/usage"; expects = "llm_calls")
end

"""
    llm_log(event_type; fields...)

Appends an event to the run's log.
"""
function llm_log(event_type; fields...)
    return call("/log", merged(fields, "event_type" => event_type); expects = "appended")
end

"""
    FINAL(result)

Records the program's result, any JSON value, as `final_result` in the run's log.
"""
function FINAL(result)
    output = result isa AbstractString ? result : json(result)
    return llm_log("final_result"; output = output, data = result)
end

"""
    tool_call(name, input = Dict())

The result of a tool of the run. Sent once, also if the connection is lost: a tool may have
effects.
"""
function tool_call(name, input = Dict())
    body = Dict("tool_name" => name, "input" => input)
    return call("/tool_call", body; expects = "result")["result"]
end

# Requests

# The answer, an object with the field `expects`.
function call(path, body = nothing; expects)
    reply, text = send(prepare(path, body))
    return understood(text, reply.status, expects)
end

# Gives each slot once, although a repeated request streams all slots again.
function stream(on_slot, body)
    seen = Set()
    completed = false
    function on_line(line)
        event = parse_or_nothing(line)
        kind = event isa Dict ? get(event, "type", nothing) : nothing
        if kind == "slot" && !(event["index"] in seen)
            push!(seen, event["index"])
            on_slot(event)
        end
        completed |= kind == "group_completed"
        return kind == "slot" || completed
    end
    request = prepare("/batch", body, "application/x-ndjson")
    reply, text = send(request; on_line = on_line, is_completed = () -> completed)
    completed || understood(text, reply.status, "type")
    return nothing
end

function open_run(settings)
    fields = merged(settings)
    limits = filter(field -> field.first in BUDGET_FIELDS, fields)
    filter!(field -> !(field.first in BUDGET_FIELDS), fields)
    if !isempty(limits)
        fields["budget"] = merge(merged(get(fields, "budget", Dict())), limits)
    end
    return call("/runs", fields; expects = "token")
end

close_run(run) = call("/runs/$(run["id"])/close", Dict{String, Any}(); expects = "status")

# The fields and the options of a request, without those that are `nothing`.
function merged(options, fields...)
    body = Dict{String, Any}()
    for (name, value) in (fields..., pairs(options)...)
        value === nothing || (body[string(name)] = value)
    end
    return body
end

# Whether the tools are definitions for the model; tools of the run go by their names.
defines_tools(body) = any(tool -> !(tool isa AbstractString), get(body, "tools", ()))

# The fields of a call that asks for the whole message.
function asking(body)
    body["include"] = union(["message"], get(body, "include", ()))
    if defines_tools(body)
        params = merged((), get(body, "params", ())..., "tools" => pop!(body, "tools"))
        body["params"] = params
    end
    return body
end

# A request with the token of the current scope.
function prepare(path, body, accept = "application/json")
    # With the /v1 that OpenAI's clients want, it is the same gateway.
    base = replace(rstrip(setting("URL", "http://127.0.0.1:8787"), '/'), r"/v1$" => "")
    if !occursin(r"^https?://[^/\s]\S*$", base)
        fail("FANOUT_URL is not an http(s) address: $base", "bad_url")
    end
    token = get(task_local_storage(), :fanout_child_token, setting("TOKEN", ""))
    isempty(token) && fail("FANOUT_TOKEN is not set: it is the run token", "no_token")
    isempty(EPOCH[]) && (EPOCH[] = bytes2hex(rand(RandomDevice(), UInt8, 16)))
    headers = [
        "authorization" => "Bearer $token",
        "x-fanout-epoch" => EPOCH[],
        "content-type" => "application/json",
        "accept" => accept,
    ]
    key = nothing
    if body !== nothing && occursin(REPEATABLE, path)
        key = pop!(body, "idempotency_key", bytes2hex(rand(RandomDevice(), UInt8, 16)))
        push!(headers, "idempotency-key" => key)
    end
    if any(iscntrl, "$token$key")
        throw(ArgumentError("no header can carry that token or that key"))
    end
    return (
        url = base * path,
        headers = headers,
        body = body === nothing ? nothing : json(body),
        is_repeatable = key !== nothing,
        is_local = occursin(r"^https?://(localhost|127\.|\[::1\])", base),
    )
end

# The reply, and its text without the lines that `on_line` took. Repeats a request that was
# lost, if it has a key.
function send(request; on_line = line -> false, is_completed = nothing)
    waits_s = request.is_repeatable ? collect(RETRY_WAITS_S) : Float64[]
    while true
        reply, text = exchange(request, on_line)
        if is_completed !== nothing && is_completed()
            return reply, text
        end
        message = nothing
        if reply isa RequestError
            message = "no answer: $(reply.message)"
            if reply.code == CURLE_OPERATION_TIMEDOUT
                fail(message, "timeout", nothing, true)
            end
        elseif is_completed !== nothing && isempty(strip(text))
            message = "no answer: the stream was cut"
        end
        message === nothing && return reply, text
        isempty(waits_s) && fail(message, "unreachable", nothing, true)
        sleep(popfirst!(waits_s))
    end
end

# Sends a request once.
function exchange(request, on_line)
    output = Base.BufferStream()
    rest = String[]
    downloader = downloader_for(request)
    timeout_s = parse(Float64, setting("TIMEOUT_S", "3600"))
    content = request.body === nothing ? NamedTuple() : (input = IOBuffer(request.body),)
    replying = @async try
        Downloads.request(
            request.url;
            method = request.body === nothing ? "GET" : "POST",
            headers = request.headers,
            output = output,
            timeout = timeout_s,
            downloader = downloader,
            throw = false,
            content...,
        )
    finally
        close(output)
    end
    for line in eachline(output)
        on_line(line) || push!(rest, line)
    end
    return fetch(replying), join(rest, '\n')
end

function downloader_for(request)
    curl = Downloads.Curl
    options = Dict{Symbol, Any}(
        :CURLOPT_FOLLOWLOCATION => 0, # The token is sent to no other host.
        :CURLOPT_LOW_SPEED_TIME => 0, # It would take a long wait for a failure.
    )
    # A proxy does not reach this machine's own addresses.
    request.is_local && (options[:CURLOPT_NOPROXY] = "*")
    downloader = Downloader()
    downloader.easy_hook = function (easy, _)
        for (name, value) in options
            curl.curl_easy_setopt(easy.handle, getproperty(curl, name), value)
        end
    end
    return downloader
end

function setting(name, default)
    for prefix in ("FANOUT_", "GATEWAY_")
        value = strip(get(ENV, prefix * name, ""))
        isempty(value) || return value
    end
    return default
end

# The object in an answer, which has the field `expects`. Throws the failure that the answer
# reports.
function understood(text, status, expects)
    answer = parse_or_nothing(text)
    error = answer isa Dict ? get(answer, "error", nothing) : nothing
    is_good = answer isa Dict && status < 300 && error === nothing
    is_good && haskey(answer, expects) && return answer
    http_status = status < 400 ? nothing : status
    if error isa Dict
        own_status = http_status === nothing ? get(error, "status", nothing) : http_status
        retryable = get(error, "retryable", false) == true
        used = (get(error, "attempts", nothing), get(error, "charged_usd", nothing))
        fail(error["message"], error["code"], own_status, retryable, used)
    elseif error isa AbstractString
        fail(error, "tool_error", http_status, status in (408, 503))
    end
    start = first(text, 200)
    fail("HTTP $status, unexpected answer: $start", "bad_answer", http_status)
end

# JSON

json(::Union{Nothing, Missing}) = "null"

function json(value::Real)
    isfinite(value) || throw(ArgumentError("JSON has no $value"))
    return string(value)
end

json(value::Union{AbstractVector, Tuple}) = "[" * join(map(json, value), ",") * "]"

function json(value::Union{AbstractDict, NamedTuple})
    fields = [json(string(name)) * ":" * json(item) for (name, item) in pairs(value)]
    # Sorted: a restarted program sends the same bytes under its key.
    return "{" * join(sort!(fields), ",") * "}"
end

function json(value)
    escaped(char) = "\\u00" * bytes2hex([UInt8(only(char))])
    return "\"" * replace(string(value), r"[\x00-\x1f\"\\]" => escaped) * "\""
end

const TOKEN = r"\"(?:[^\"\\]++|\\.)*+\"|[][{}:,]|[^][{}:,\"\s]+"
const ESCAPE = r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\."
const SIMPLE_ESCAPES = Dict(
    "\\b" => "\b",
    "\\f" => "\f",
    "\\n" => "\n",
    "\\r" => "\r",
    "\\t" => "\t",
)

function parse_or_nothing(text)
    try
        return parse_json(text)
    catch
        return nothing
    end
end

function parse_json(text)
    tokens = Iterators.Stateful(found.match for found in eachmatch(TOKEN, text))
    value = parse_value(tokens, popfirst!(tokens))
    isempty(tokens) || error("more than one value")
    return value
end

function parse_value(tokens, token)
    token == "{" && return parse_object(tokens)
    token == "[" && return parse_array(tokens)
    startswith(token, '"') && return unquoted(token)
    token == "null" && return nothing
    token == "true" && return true
    token == "false" && return false
    integer = tryparse(Int, token)
    return integer === nothing ? parse(Float64, token) : integer
end

function parse_array(tokens)
    items = Any[]
    while (token = popfirst!(tokens)) != "]"
        token == "," || push!(items, parse_value(tokens, token))
    end
    return items
end

function parse_object(tokens)
    fields = Dict{String, Any}()
    while (token = popfirst!(tokens)) != "}"
        token == "," && continue
        popfirst!(tokens) # The colon.
        fields[unquoted(token)] = parse_value(tokens, popfirst!(tokens))
    end
    return fields
end

unquoted(token) = replace(chop(token, head = 1), ESCAPE => unescaped)

function unescaped(escape)
    startswith(escape, "\\u") || return get(SIMPLE_ESCAPES, escape, escape[2:2])
    codes = parse.(Int, split(escape, "\\u", keepempty = false), base = 16)
    if length(codes) == 2
        high, low = codes
        return string(Char(0x00010000 + (high - 0xd800) * 0x0400 + low - 0xdc00))
    end
    # Half of a surrogate pair is no character.
    return 0xd800 <= codes[1] < 0xe000 ? "\ufffd" : string(Char(codes[1]))
end

end
