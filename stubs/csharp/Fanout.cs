// Calls a fanout gateway from C# 8 or newer: .NET Core 3.1, .NET 5 and all later.
//
// One file without packages: copy it into the project.
//
//     string answer = await Fanout.QueryAsync("What is 2 + 2?");
//     List<Slot> slots = await Fanout.BatchAsync(prompts, "some-model", new { max_tokens = 200 });
//     await foreach (Slot slot in Fanout.StreamAsync(prompts))
//         Console.WriteLine($"{slot.Index}: {slot.Text}");
//     await Fanout.WithRunAsync(new { usd = 0.05 }, async run =>
//     {
//         // Calls in this function can spend 0.05 USD at most.
//         slots = await Fanout.BatchAsync(prompts);
//     });
//
// Environment variables:
//     FANOUT_URL        the gateway's address (default http://127.0.0.1:8787); or GATEWAY_URL
//     FANOUT_TOKEN      the run token, which POST /runs returned; or GATEWAY_TOKEN
//     FANOUT_TIMEOUT_S  how long the gateway may be silent before a call fails (default 660)
//
// Options are an object or a dictionary, sent as the request fields of their names.
// `idempotency_key` is sent as a header instead: a restarted program that repeats the call
// under the same key gets the recorded answer at no cost. If the connection is lost, the
// request is repeated under the same key and is paid once. All other retries happen in the
// gateway.
//
// The gateway's own tests do not run this file: no trusted package of .NET can be installed
// where they run. Run by hand on .NET Core 3.1, it passed them, without MessageAsync.

#nullable disable

using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Net.Http;
using System.Text.Json;
using System.Text.RegularExpressions;
using System.Threading;
using System.Threading.Tasks;

/// <summary>A failed call.</summary>
public sealed class FanoutException : Exception
{
    /// <summary>The gateway's code, or no_token, bad_url, unreachable, timeout, bad_answer,
    /// tool_error.</summary>
    public string Code { get; }

    /// <summary>The HTTP status, or null if there was no answer.</summary>
    public int? Status { get; }

    /// <summary>Whether the same call may succeed later.</summary>
    public bool Retryable { get; }

    /// <summary>How often a call was tried that was made; else null.</summary>
    public int? Attempts { get; internal set; }

    /// <summary>What these attempts were charged, USD; else null.</summary>
    public decimal? ChargedUsd { get; internal set; }

    public FanoutException(string code, string message, int? status = null, bool retryable = false)
        : base(message)
    {
        Code = code;
        Status = status;
        Retryable = retryable;
    }
}

/// <summary>The result of one prompt of a batch.</summary>
public sealed class Slot
{
    /// <summary>The position of the prompt.</summary>
    public int Index { get; }

    /// <summary>The answer, or null if the slot failed.</summary>
    public string Text { get; }

    /// <summary>With the option schema, the value that fits it.</summary>
    public JsonElement? Json { get; }

    /// <summary>The whole message, if it has more than text or the option include asks for
    /// it.</summary>
    public JsonElement? Message { get; internal set; }

    /// <summary>The failure, or null if the slot succeeded.</summary>
    public FanoutException Error { get; }

    internal Slot(int index, string text, JsonElement? json, FanoutException error)
    {
        Index = index;
        Text = text;
        Json = json;
        Error = error;
    }
}

/// <summary>A child run that is open.</summary>
public sealed class ChildRun
{
    public string Id { get; }

    /// <summary>The token that calls in the child's scope send.</summary>
    public string Token { get; }

    internal ChildRun(string id, string token)
    {
        Id = id;
        Token = token;
    }
}

public static class Fanout
{
    // The pauses before a request whose connection was lost is repeated.
    private static readonly double[] RetryPausesS = { 0.25, 0.5, 1, 2 };

    // The default is longer than the gateway's own limit, so that its error message arrives.
    private const string TimeoutS = "660";

    // The gateway recognises these requests by their idempotency key.
    private static readonly Regex Repeatable = new Regex("^/(query|batch|dag|runs|runs/[^/]+/close)$");

    private static readonly string[] BudgetFields =
    {
        "usd",
        "calls",
        "prompt_tokens",
        "completion_tokens",
    };

    // A proxy does not reach this machine's own addresses.
    private static readonly HttpClient LocalClient = NewClient(useProxy: false);
    private static readonly HttpClient RemoteClient = NewClient(useProxy: true);

    // Names this life of the program, so that a run that records can replay the one before.
    private static readonly string Epoch = Guid.NewGuid().ToString();

    // The token of the child run in whose scope this flow of tasks is.
    private static readonly AsyncLocal<string> ChildToken = new AsyncLocal<string>();

    /// <summary>Returns the answer to one prompt.</summary>
    public static Task<string> QueryAsync(string prompt, object options = null) =>
        QueryAsync(prompt, null, options);

    /// <summary>Returns the answer to one prompt, by this model.</summary>
    public static async Task<string> QueryAsync(
        string prompt,
        string model,
        object options = null
    )
    {
        var fields = Merge(options, ("prompt", prompt), ("model", model));
        return Field(await CallAsync("/query", fields, "text"), "text");
    }

    /// <summary>Returns the answer to one prompt as a value that fits a JSON Schema.</summary>
    public static async Task<JsonElement> QueryJsonAsync(
        string prompt,
        object schema,
        object options = null
    )
    {
        var fields = Merge(options, ("prompt", prompt), ("schema", schema));
        return (await CallAsync("/query", fields, "json")).GetProperty("json");
    }

    /// <summary>Returns the whole message of an answer to a prompt, or to a list of chat messages:
    /// content, tool_calls, … With the option tools of a chat completion it may ask for them: sent
    /// back as one of the messages, with their results, it goes on. Tools of the run go by their
    /// names: the gateway calls them itself, and the message is the last of at most max_turns
    /// answers.</summary>
    public static async Task<JsonElement> MessageAsync(
        object promptOrMessages,
        string model = null,
        object options = null
    )
    {
        string name = promptOrMessages is string ? "prompt" : "messages";
        string[] include = { "message" };
        var fields = Merge(options, (name, promptOrMessages), ("model", model), ("include", include));
        return (await CallAsync("/query", WithTools(fields), "message")).GetProperty("message");
    }

    /// <summary>Runs a graph of tasks whose prompts refer to each other: {{a.output}}. The outputs
    /// of its last tasks are in the property outputs, by id.</summary>
    public static Task<JsonElement> DagAsync(IEnumerable<object> tasks, object options = null) =>
        CallAsync("/dag", Merge(options, ("tasks", tasks)), "tasks");

    /// <summary>Answers a prompt so many times and returns the vote: decided, winner, agreement, …
    /// The option aggregate changes its rule.</summary>
    public static async Task<JsonElement> VoteAsync(
        string prompt,
        int count = 3,
        object options = null
    )
    {
        var fields = Merge(options, ("prompts", Enumerable.Repeat(prompt, count)));
        if (!fields.ContainsKey("aggregate"))
        {
            fields = Merge(fields, ("aggregate", new { strategy = "vote" }));
        }
        return (await CallAsync("/batch", fields, "aggregation")).GetProperty("aggregation");
    }

    /// <summary>Returns the results of many prompts, in their order, by one request. A failed
    /// prompt does not affect the others. Throws only if the whole request fails.</summary>
    public static Task<List<Slot>> BatchAsync(IEnumerable<string> prompts, object options = null) =>
        BatchAsync(prompts, null, options);

    /// <summary>Returns the results of many prompts, by this model.</summary>
    public static async Task<List<Slot>> BatchAsync(
        IEnumerable<string> prompts,
        string model,
        object options = null
    )
    {
        var slots = new List<Slot>();
        await foreach (Slot slot in StreamAsync(prompts, model, options))
        {
            slots.Add(slot);
        }
        return slots.OrderBy(slot => slot.Index).ToList();
    }

    /// <summary>Yields the results of a batch as its slots end.</summary>
    public static IAsyncEnumerable<Slot> StreamAsync(
        IEnumerable<string> prompts,
        object options = null
    ) => StreamAsync(prompts, null, options);

    /// <summary>Yields the results of a batch, by this model, as its slots end.</summary>
    public static IAsyncEnumerable<Slot> StreamAsync(
        IEnumerable<string> prompts,
        string model,
        object options = null
    )
    {
        string[] sent = prompts.ToArray();
        if (sent.Length == 0)
        {
            return NoSlotsAsync();
        }
        // Prepared at once, with the token of this scope.
        var fields = WithTools(Merge(options, ("prompts", sent), ("model", model)));
        return SlotsAsync(Request.Prepare("/batch", fields, "type"), sent.Length);
    }

    /// <summary>Opens a child run for a function: calls in the function spend the child's
    /// budget.
    /// <para>Settings are an object or a dictionary. usd, calls, prompt_tokens and
    /// completion_tokens are limits. They are reserved in the budget of the run around the
    /// function; a limit that is left out becomes an equal split of what remains there. Other
    /// settings are the fields of POST /runs: name, max_parallel, models, default_model,
    /// …</para>
    /// <para>When the function ends, also by an exception, the child run is closed and what it
    /// has not spent returns. Scopes nest. A task that is started inside stays inside; tasks
    /// outside are not affected.</para></summary>
    public static async Task<T> WithRunAsync<T>(object settings, Func<ChildRun, Task<T>> scope)
    {
        ChildRun run = await OpenRunAsync(settings);
        T result;
        try
        {
            result = await InsideAsync(run, scope);
        }
        catch
        {
            try
            {
                await CloseRunAsync(run);
            }
            catch (FanoutException)
            {
                // The function's own failure matters more.
            }
            throw;
        }
        await CloseRunAsync(run);
        return result;
    }

    /// <summary>Opens a child run for a function without a value.</summary>
    public static Task WithRunAsync(object settings, Func<ChildRun, Task> scope) =>
        WithRunAsync(
            settings,
            async run =>
            {
                await scope(run);
                return true;
            }
        );

    /// <summary>Returns what is left of the run's budget, child runs included: usd, calls,
    /// prompt_tokens and completion_tokens, each with limit, spent, reserved and
    /// remaining.</summary>
    public static Task<JsonElement> BudgetAsync() => CallAsync("/budget", null, "usd");

    /// <summary>Returns what the run itself has used since the last reset, child runs not
    /// included: llm_calls, input_tokens, output_tokens, cost in USD, calls_by_model. What child
    /// runs spent is in BudgetAsync().</summary>
    public static Task<JsonElement> UsageAsync(bool reset = false) =>
        CallAsync(reset ? "/usage?reset=1" : "/usage", null, "llm_calls");

    /// <summary>Records the program's result, any JSON value, as final_result in the run's
    /// log.</summary>
    public static Task FinalAsync(object result)
    {
        string output = result as string ?? JsonSerializer.Serialize(result);
        return LogAsync("final_result", new { output, data = result });
    }

    /// <summary>Appends an event to the run's log. Fields: output (a string), data, code,
    /// reasoning, hasError, step.</summary>
    public static Task LogAsync(string eventType, object fields = null) =>
        CallAsync("/log", Merge(fields, ("event_type", eventType)), "appended");

    /// <summary>Returns the result of a tool of the run. Sent once, also if the connection is
    /// lost: a tool may have effects.</summary>
    public static async Task<JsonElement> ToolCallAsync(string name, object input)
    {
        var fields = Merge(null, ("tool_name", name), ("input", input));
        return (await CallAsync("/tool_call", fields, "result")).GetProperty("result");
    }

#pragma warning disable CS1998 // An iterator that awaits nothing.
    private static async IAsyncEnumerable<Slot> NoSlotsAsync()
    {
        yield break;
    }
#pragma warning restore CS1998

    private static async IAsyncEnumerable<Slot> SlotsAsync(Request request, int count)
    {
        // A repeated request streams all slots again.
        var seen = new HashSet<int>();
        await foreach (JsonElement line in AnswersAsync(request))
        {
            if (Field(line, "type") != "slot")
            {
                continue;
            }
            int index = line.GetProperty("index").GetInt32();
            if (!seen.Add(index))
            {
                continue;
            }
            JsonElement error = line.GetProperty("error");
            bool hasFailed = error.ValueKind != JsonValueKind.Null;
            yield return hasFailed
                ? new Slot(index, null, null, Failure(error, null))
                : new Slot(index, Field(line, "result"), JsonOf(line), null)
                {
                    Message = line.TryGetProperty("message", out JsonElement message)
                        ? message.Clone()
                        : (JsonElement?)null,
                };
        }
        if (seen.Count < count)
        {
            throw new FanoutException("bad_answer", $"{count} prompts got {seen.Count} results", 200);
        }
    }

    private static JsonElement? JsonOf(JsonElement line) =>
        line.TryGetProperty("json", out JsonElement json) ? json : (JsonElement?)null;

    private static async Task<ChildRun> OpenRunAsync(object settings)
    {
        Dictionary<string, JsonElement> fields = FieldsOf(settings);
        var limits = new Dictionary<string, JsonElement>();
        if (fields.TryGetValue("budget", out JsonElement budget))
        {
            limits = FieldsOf(budget);
        }
        foreach (string name in BudgetFields)
        {
            if (fields.Remove(name, out JsonElement limit))
            {
                limits[name] = limit;
            }
        }
        if (limits.Count > 0)
        {
            fields = Merge(fields, ("budget", limits));
        }
        JsonElement run = await CallAsync("/runs", fields, "token");
        return new ChildRun(Field(run, "id"), Field(run, "token"));
    }

    private static Task CloseRunAsync(ChildRun run) =>
        CallAsync($"/runs/{run.Id}/close", Merge(null), "status");

    // An AsyncLocal that an async method sets is as before when that method returns.
    private static async Task<T> InsideAsync<T>(ChildRun run, Func<ChildRun, Task<T>> scope)
    {
        ChildToken.Value = run.Token;
        return await scope(run);
    }

    // Returns the answer, an object with the field `expects`. GET if `fields` is null.
    private static async Task<JsonElement> CallAsync(
        string path,
        Dictionary<string, JsonElement> fields,
        string expects
    )
    {
        Request request = Request.Prepare(path, fields, expects);
        await foreach (JsonElement answer in AnswersAsync(request))
        {
            return answer;
        }
        throw Failure(default, null);
    }

    // Yields the JSON objects of an answer, of which a batch has many. Repeats a request that
    // was lost, if it has a key.
    private static async IAsyncEnumerable<JsonElement> AnswersAsync(Request request)
    {
        for (int retries = 0; ; retries++)
        {
            string loss = "the answer was cut";
            using (var attempt = new Attempt(request))
            {
                while (true)
                {
                    JsonElement? answer = null;
                    try
                    {
                        answer = await attempt.NextAsync();
                    }
                    catch (Exception e) when (e is HttpRequestException || e is IOException)
                    {
                        loss = e.Message;
                    }
                    if (answer == null)
                    {
                        break;
                    }
                    yield return answer.Value;
                    if (!request.IsBatch || Field(answer.Value, "type") == "group_completed")
                    {
                        yield break;
                    }
                }
            }
            if (request.Key == null || retries == RetryPausesS.Length)
            {
                throw new FanoutException("unreachable", "no answer: " + loss, null, true);
            }
            await Task.Delay(TimeSpan.FromSeconds(RetryPausesS[retries]));
        }
    }

    private static HttpClient NewClient(bool useProxy)
    {
        // The token is sent to no other host.
        var handler = new SocketsHttpHandler { AllowAutoRedirect = false, UseProxy = useProxy };
        return new HttpClient(handler) { Timeout = Timeout.InfiniteTimeSpan };
    }

    private static string Setting(string name, string otherwise)
    {
        foreach (string prefix in new[] { "FANOUT_", "GATEWAY_" })
        {
            string value = Environment.GetEnvironmentVariable(prefix + name)?.Trim();
            if (!string.IsNullOrEmpty(value))
            {
                return value;
            }
        }
        return otherwise;
    }

    private static Dictionary<string, JsonElement> FieldsOf(object fields)
    {
        string json = JsonSerializer.Serialize(fields ?? new { });
        return JsonSerializer.Deserialize<Dictionary<string, JsonElement>>(json);
    }

    // The options and these fields, without those that are null.
    private static Dictionary<string, JsonElement> Merge(
        object options,
        params (string Name, object Value)[] fields
    )
    {
        Dictionary<string, JsonElement> merged = FieldsOf(options);
        foreach ((string name, object value) in fields)
        {
            if (value != null)
            {
                merged[name] = ParseJson(JsonSerializer.Serialize(value));
            }
        }
        return merged;
    }

    // The fields with the tools where the gateway takes them: those of the run go by their names,
    // definitions are for the model.
    private static Dictionary<string, JsonElement> WithTools(Dictionary<string, JsonElement> fields)
    {
        bool defines =
            fields.TryGetValue("tools", out JsonElement tools)
            && tools.ValueKind == JsonValueKind.Array
            && tools.EnumerateArray().Any(tool => tool.ValueKind != JsonValueKind.String);
        if (!defines)
        {
            return fields;
        }
        fields.TryGetValue("params", out JsonElement given);
        object options = given.ValueKind == JsonValueKind.Object ? (object)given : null;
        var sent = Merge(fields, ("params", Merge(options, ("tools", tools))));
        sent.Remove("tools");
        return sent;
    }

    // The field as text, or null if it is missing.
    private static string Field(JsonElement answer, string name) =>
        answer.TryGetProperty(name, out JsonElement value) ? value.ToString() : null;

    private static JsonElement ParseJson(string json)
    {
        using JsonDocument document = JsonDocument.Parse(json);
        return document.RootElement.Clone();
    }

    // The object in a line, without fields if the line is not an object.
    private static JsonElement ParseObject(string line)
    {
        try
        {
            return ParseJson(line.StartsWith("{") ? line : "{}");
        }
        catch (JsonException)
        {
            return ParseJson("{}");
        }
    }

    private static FanoutException Failure(JsonElement error, int? status)
    {
        if (error.ValueKind == JsonValueKind.String)
        {
            bool isRetryable = status == 408 || status == 503;
            return new FanoutException("tool_error", error.GetString(), status, isRetryable);
        }
        if (error.ValueKind != JsonValueKind.Object)
        {
            return new FanoutException("bad_answer", $"HTTP {status}, unexpected answer", status);
        }
        if (int.TryParse(Field(error, "status"), out int ownStatus))
        {
            status = ownStatus;
        }
        var failure = new FanoutException(
            Field(error, "code") ?? "unknown",
            Field(error, "message"),
            status,
            Field(error, "retryable") == "True"
        );
        if (error.TryGetProperty("attempts", out JsonElement attempts))
        {
            failure.Attempts = attempts.GetInt32();
        }
        if (error.TryGetProperty("charged_usd", out JsonElement charged))
        {
            failure.ChargedUsd = charged.GetDecimal();
        }
        return failure;
    }

    // A request, and what it takes to repeat it.
    private sealed class Request
    {
        public Uri Address { get; private set; }
        public string Token { get; private set; }
        public string Key { get; private set; }
        public string Json { get; private set; }
        public string Expects { get; private set; }
        public bool IsBatch { get; private set; }
        public TimeSpan Timeout { get; private set; }

        public static Request Prepare(
            string path,
            Dictionary<string, JsonElement> fields,
            string expects
        )
        {
            string url = Setting("URL", "http://127.0.0.1:8787").TrimEnd('/');
            // With the /v1 that OpenAI's clients want, it is the same gateway.
            url = url.EndsWith("/v1") ? url.Substring(0, url.Length - 3) : url;
            bool isAddress = Uri.TryCreate(url + path, UriKind.Absolute, out Uri address);
            if (!isAddress || !address.Scheme.StartsWith("http"))
            {
                throw new FanoutException("bad_url", "FANOUT_URL is not an http(s) address: " + url);
            }
            string token = ChildToken.Value ?? Setting("TOKEN", null);
            if (token == null)
            {
                throw new FanoutException("no_token", "FANOUT_TOKEN is not set: it is the run token");
            }
            string timeoutS = Setting("TIMEOUT_S", TimeoutS);
            return new Request
            {
                Address = address,
                Token = token,
                Key = fields != null && Repeatable.IsMatch(path) ? TakeKey(fields) : null,
                Json = fields == null ? null : JsonSerializer.Serialize(fields),
                Expects = expects,
                IsBatch = path == "/batch" && expects == "type",
                Timeout = TimeSpan.FromSeconds(JsonSerializer.Deserialize<double>(timeoutS)),
            };
        }

        public HttpRequestMessage ToMessage()
        {
            var message = new HttpRequestMessage(
                Json == null ? HttpMethod.Get : HttpMethod.Post,
                Address
            );
            if (Json != null)
            {
                message.Content = new StringContent(Json, null, "application/json");
            }
            message.Headers.Add("authorization", "Bearer " + Token);
            message.Headers.Add("x-fanout-epoch", Epoch);
            message.Headers.Add("accept", IsBatch ? "application/x-ndjson" : "application/json");
            if (Key != null)
            {
                message.Headers.Add("idempotency-key", Key);
            }
            // A connection that is used again may be stale: HttpClient would repeat by itself.
            message.Headers.ConnectionClose = true;
            return message;
        }

        private static string TakeKey(Dictionary<string, JsonElement> fields) =>
            fields.Remove("idempotency_key", out JsonElement key)
                ? key.ToString()
                : Guid.NewGuid().ToString();
    }

    // A request that is sent once, and its answer.
    private sealed class Attempt : IDisposable
    {
        private readonly Request _request;
        private HttpResponseMessage _response;
        private StreamReader _reader;

        public Attempt(Request request)
        {
            _request = request;
        }

        public void Dispose() => _response?.Dispose();

        // Returns the next JSON object, or null if the answer ended.
        public async Task<JsonElement?> NextAsync()
        {
            using var silence = new CancellationTokenSource(_request.Timeout);
            using var ending = silence.Token.Register(Dispose);
            try
            {
                if (_response == null)
                {
                    await SendAsync(silence.Token);
                }
                string line = await NextLineAsync(silence);
                if (line == null && _response.IsSuccessStatusCode)
                {
                    return null;
                }
                return Understood(ParseObject(line ?? ""));
            }
            catch when (silence.IsCancellationRequested)
            {
                string message = $"no answer: silence of {_request.Timeout.TotalSeconds} s";
                throw new FanoutException("timeout", message, null, true);
            }
        }

        private async Task SendAsync(CancellationToken cancellation)
        {
            HttpClient client = _request.Address.IsLoopback ? LocalClient : RemoteClient;
            _response = await client.SendAsync(
                _request.ToMessage(),
                HttpCompletionOption.ResponseHeadersRead,
                cancellation
            );
            _reader = new StreamReader(await _response.Content.ReadAsStreamAsync());
        }

        // Empty lines keep the connection alive, and each begins the time of silence anew.
        private async Task<string> NextLineAsync(CancellationTokenSource silence)
        {
            string line;
            do
            {
                line = (await _reader.ReadLineAsync())?.Trim();
                silence.CancelAfter(_request.Timeout);
            } while (line == "");
            return line;
        }

        // Returns the answer, or throws the failure that it reports. A slot of a stream reports
        // its own error as data.
        private JsonElement Understood(JsonElement answer)
        {
            string type = Field(answer, "type");
            bool hasError = type != "slot" && !string.IsNullOrEmpty(Field(answer, "error"));
            bool isExpected = type != "error" && answer.TryGetProperty(_request.Expects, out _);
            if (hasError || !isExpected || !_response.IsSuccessStatusCode)
            {
                JsonElement error = hasError ? answer.GetProperty("error") : default;
                throw Failure(error, (int)_response.StatusCode);
            }
            return answer;
        }
    }
}
