// Ask a fanout gateway from C# 8 or newer (.NET Core 3.1, .NET 5 and all later). One file without packages: copy it.
//
//     string answer = await Fanout.QueryAsync("What is 2 + 2?");
//     List<Slot> slots = await Fanout.BatchAsync(prompts, new { model = "up/model", max_tokens = 200 });
//     await foreach (Slot slot in Fanout.StreamAsync(prompts)) Console.WriteLine($"{slot.Index}: {slot.Text}");
//
// Options (an object or a dictionary) are fields of the request; by its idempotency_key a program that starts again
// finds its answers. FANOUT_URL names the gateway (default http://127.0.0.1:8787), FANOUT_TOKEN carries the run token;
// GATEWAY_URL and GATEWAY_TOKEN stand in. FANOUT_TIMEOUT_S (660) is the longest silence borne. A lost connection is
// tried again under the same idempotency key, so nothing is paid twice; LogAsync and ToolCallAsync ask once.
#nullable disable
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Net.Http;
using System.Text.Json;
using System.Threading;
using System.Threading.Tasks;

/// <summary>A failed call. Code: the gateway's, or no_token, bad_url, unreachable, timeout, bad_answer, tool_error.
/// Status: null where there was no answer. If Retryable, the same call may succeed later.</summary>
public sealed class FanoutException : Exception {
    public string Code { get; }
    public int? Status { get; }
    public bool Retryable { get; }
    public FanoutException(string code, string message, int? status = null, bool retryable = false) : base(message) =>
        (Code, Status, Retryable) = (code, status, retryable);
}
/// <summary>What became of the prompt at Index: Text is its answer, unless Error is set.</summary>
public sealed class Slot {
    public int Index { get; }
    public string Text { get; }
    public FanoutException Error { get; }
    internal Slot(int index, string text, FanoutException error) => (Index, Text, Error) = (index, text, error);
}
public static class Fanout {
    /// <summary>Answers one prompt.</summary>
    public static async Task<string> QueryAsync(string prompt, object options = null) =>
        Field(await AskAsync("/query", "text", options, new { prompt }), "text");
    /// <summary>Answers prompts asked at once, in their order. Throws for the whole request only.</summary>
    public static async Task<List<Slot>> BatchAsync(IEnumerable<string> prompts, object options = null) {
        var slots = new List<Slot>();
        await foreach (Slot slot in StreamAsync(prompts, options)) slots.Add(slot);
        return slots.OrderBy(slot => slot.Index).ToList();
    }
    /// <summary>Gives each slot as it ends.</summary>
    public static async IAsyncEnumerable<Slot> StreamAsync(IEnumerable<string> prompts, object options = null) {
        var (asked, given) = (prompts.ToArray(), new HashSet<int>()); // A stream asked for again tells all slots again.
        if (asked.Length == 0) yield break;
        await foreach (JsonElement line in LinesAsync("/batch", "type", options, new { prompts = asked })) {
            if (Field(line, "type") != "slot" || !given.Add(line.GetProperty("index").GetInt32())) continue;
            var (index, error) = (line.GetProperty("index").GetInt32(), line.GetProperty("error"));
            FanoutException failed = error.ValueKind == JsonValueKind.Null ? null : Failure(error, null);
            yield return new Slot(index, failed == null ? Field(line, "result") : null, failed);
        }
        if (given.Count < asked.Length) throw Failure(default, 200);
    }
    /// <summary>Tells of usd, calls, prompt_tokens, completion_tokens: limit, spent, reserved, remaining.</summary>
    public static Task<JsonElement> BudgetAsync() => AskAsync("/budget", "usd", null, null);
    /// <summary>Tells llm_calls, input_tokens, output_tokens, cost (USD), calls_by_model; reset counts anew.</summary>
    public static Task<JsonElement> UsageAsync(bool reset = false) =>
        AskAsync(reset ? "/usage?reset=1" : "/usage", "llm_calls", null, null);
    /// <summary>Leaves the run's result in its log.</summary>
    public static Task FinalAsync(object result) =>
        LogAsync("final_result", new { output = result as string ?? JsonSerializer.Serialize(result), data = result });
    /// <summary>Leaves an event in the run's log: output (a string), data, code, reasoning, hasError, step.</summary>
    public static Task LogAsync(string eventType, object fields = null) =>
        AskAsync("/log", "appended", fields, new { event_type = eventType });
    /// <summary>Calls a tool that was registered with the run.</summary>
    public static async Task<JsonElement> ToolCallAsync(string name, object input) =>
        (await AskAsync("/tool_call", "result", null, new { tool_name = name, input })).GetProperty("result");
    static readonly HttpClient Near = Client(false), Far = Client(true); // No proxy reaches a loopback address.
    static HttpClient Client(bool proxy) => new HttpClient(
        new SocketsHttpHandler { AllowAutoRedirect = false, UseProxy = proxy }) { Timeout = Timeout.InfiniteTimeSpan };
    static async Task<JsonElement> AskAsync(string path, string field, object options, object fields) {
        await foreach (JsonElement answer in LinesAsync(path, field, options, fields)) return answer;
        throw Failure(default, null);
    }
    static async IAsyncEnumerable<JsonElement> LinesAsync(string path, string field, object options, object fields) {
        string url = Variable("FANOUT_URL") ?? Variable("GATEWAY_URL") ?? "http://127.0.0.1:8787";
        string token = Variable("FANOUT_TOKEN") ?? Variable("GATEWAY_TOKEN");
        if (token == null) throw new FanoutException("no_token", "FANOUT_TOKEN is not set: it carries a run's token");
        var silence = TimeSpan.FromSeconds(JsonSerializer.Deserialize<double>(Variable("FANOUT_TIMEOUT_S") ?? "660"));
        if (!Uri.TryCreate(url.TrimEnd('/') + path, UriKind.Absolute, out Uri uri) || !uri.Scheme.StartsWith("http"))
            throw new FanoutException("bad_url", "FANOUT_URL must be an http:// or https:// address, not " + url);
        Dictionary<string, JsonElement> body = FieldsOf(options);
        foreach (var (name, value) in FieldsOf(fields)) body[name] = value;
        string key = body.Remove("idempotency_key", out JsonElement own) ? own.ToString() : Guid.NewGuid().ToString();
        string json = JsonSerializer.Serialize(body);
        bool isOnce = path == "/log" || path == "/tool_call" || path == "/usage?reset=1";
        (HttpResponseMessage response, StreamReader lines, Exception lost) = (null, null, null);
        async Task<JsonElement?> NextAsync() { // Null where the connection is lost.
            using var quiet = new CancellationTokenSource(silence);
            using var closing = quiet.Token.Register(() => response?.Dispose());
            try {
                if (response == null) {
                    var request = new HttpRequestMessage(fields == null ? HttpMethod.Get : HttpMethod.Post, uri);
                    if (fields != null) request.Content = new StringContent(json, null, "application/json");
                    request.Headers.Add("authorization", "Bearer " + token);
                    request.Headers.Add("accept", "application/x-ndjson");
                    if (!isOnce) request.Headers.Add("idempotency-key", key);
                    request.Headers.ConnectionClose = true; // One used again may be stale, and is repeated unseen.
                    HttpClient client = uri.IsLoopback ? Near : Far;
                    response = await client.SendAsync(request, HttpCompletionOption.ResponseHeadersRead, quiet.Token);
                    lines = new StreamReader(await response.Content.ReadAsStreamAsync());
                }
                string line = "";
                for (; line == ""; quiet.CancelAfter(silence)) line = (await lines.ReadLineAsync())?.Trim();
                if (line == null && response.IsSuccessStatusCode) return null;
                JsonElement answer = Parsed(line ?? "{}");
                bool isTold = Field(answer, "type") != "slot" && !string.IsNullOrEmpty(Field(answer, "error"));
                bool isWhole = answer.TryGetProperty(field, out _) && Field(answer, "type") != "error";
                JsonElement error = isTold ? answer.GetProperty("error") : default;
                if (isTold || !isWhole || !response.IsSuccessStatusCode) throw Failure(error, (int)response.StatusCode);
                return answer;
            }
            catch when (quiet.IsCancellationRequested) { throw new FanoutException("timeout", "silence", null, true); }
            catch (Exception e) when (e is HttpRequestException || e is IOException) { lost = e; return null; }
        }
        for (int pauseMs = 250; ; pauseMs *= 2, response = null) {
            try {
                while (await NextAsync() is JsonElement answer) {
                    yield return answer;
                    if (field != "type" || Field(answer, "type") == "group_completed") yield break;
                }
            }
            finally { response?.Dispose(); }
            if (isOnce || pauseMs > 2000) throw new FanoutException("unreachable", lost?.Message ?? "cut", null, true);
            await Task.Delay(pauseMs);
        }
    }
    static string Variable(string name) =>
        Environment.GetEnvironmentVariable(name) is string value && value.Trim() != "" ? value.Trim() : null;
    static Dictionary<string, JsonElement> FieldsOf(object fields) =>
        JsonSerializer.Deserialize<Dictionary<string, JsonElement>>(JsonSerializer.Serialize(fields ?? new { }));
    static string Field(JsonElement answer, string name) => answer.TryGetProperty(name, out var it) ? $"{it}" : null;
    static JsonElement Parsed(string text) { // An object without fields where it holds none.
        try { return JsonDocument.Parse(text[0] == '{' ? text : "{}").RootElement; }
        catch (JsonException) { return JsonDocument.Parse("{}").RootElement; }
    }
    static FanoutException Failure(JsonElement e, int? status) {
        bool later = status == 408 || status == 503;
        if (e.ValueKind == JsonValueKind.String) return new FanoutException("tool_error", $"{e}", status, later);
        if (e.ValueKind != JsonValueKind.Object) return new FanoutException("bad_answer", $"answer {status}", status);
        if (int.TryParse(Field(e, "status"), out int own)) status = own;
        later = Field(e, "retryable") == "True";
        return new FanoutException(Field(e, "code") ?? "unknown", Field(e, "message"), status, later);
    }
}
