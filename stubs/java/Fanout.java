import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.stream.Collectors.joining;
import java.io.*;
import java.net.*;
import java.util.*;
import java.util.function.Consumer;
import java.util.regex.*;
/** Asks a fanout gateway from Java 11 or newer. One file without dependencies: copy it into your sources.<pre>
 *   String answer = Fanout.query("What is 2 + 2?", Map.of());
 *   List<Fanout.Slot> slots = Fanout.batch(prompts, Map.of("model", "up/model", "max_tokens", 200));
 *   Fanout.stream(prompts, Map.of(), slot -> System.out.println(slot.index + ": " + slot.text)); // Each as it ends.
 * </pre>Options are fields of the request; by its idempotency_key a program that starts again finds its answers.
 * FANOUT_URL names the gateway (default http://127.0.0.1:8787), FANOUT_TOKEN carries the run token; GATEWAY_URL and
 * GATEWAY_TOKEN stand in. FANOUT_TIMEOUT_S (660) is the longest silence borne. A lost connection is tried again under
 * the same key: nothing is paid twice, and log and toolCall, which have none, are asked once. */
public final class Fanout {
    /** A failed call. Its code is the gateway's, or no_token, bad_url, unreachable, timeout, bad_answer, tool_error. */
    @SuppressWarnings("serial") public static final class FanoutException extends RuntimeException {
        public final String code; public final int status; public final boolean retryable; // Status 0: none.
        FanoutException(String c, String text, int s, boolean r) { super(text); code = c; status = s; retryable = r; }
    }
    /** What became of the prompt at an index: its text, or an error. The other is null. */
    public static final class Slot {
        public final int index; public final String text; public final FanoutException error;
        Slot(int at, String text, FanoutException error) { index = at; this.text = text; this.error = error; }
    }
    /** Answers one prompt. */
    public static String query(String prompt, Map<String, ?> options) {
        return get(ask("/query", "text", null, options, "prompt", prompt), "text");
    }
    /** Answers prompts asked at once, in their order. Throws for the whole request; a slot has an error of its own. */
    public static List<Slot> batch(List<String> prompts, Map<String, ?> options) {
        Slot[] slots = new Slot[prompts.size()];
        stream(prompts, options, slot -> slots[slot.index] = slot);
        return Arrays.asList(slots);
    }
    /** Gives each slot as it ends. */
    public static void stream(List<String> prompts, Map<String, ?> options, Consumer<Slot> each) {
        Set<Integer> given = new HashSet<>(); // A stream that is asked for again tells all its slots again.
        if (!prompts.isEmpty()) ask("/batch", "type", event -> {
            int index = "slot".equals(get(event, "type")) ? Integer.parseInt(get(event, "index")) : -1;
            if (index < 0 || index >= prompts.size() || !given.add(index)) return;
            FanoutException error = get(event, "error") == null ? null : failure(event, 0);
            each.accept(new Slot(index, error == null ? get(event, "result") : null, error));
        }, options, "prompts", prompts);
        if (given.size() < prompts.size()) throw failure("{}", 200);
    }
    /** Tells of usd, calls, prompt_tokens and completion_tokens: limit, spent, reserved and remaining. */
    public static String budget() { return ask("/budget", "usd", null, Map.of()); }
    /** Tells llm_calls, input_tokens, output_tokens, cost (USD) and calls_by_model; usage(true) counts anew. */
    public static String usage(boolean now) { return ask("/usage" + (now ? "?reset=1" : ""), "cost", null, Map.of()); }
    /** Leaves the run's result in its log: a string, number or boolean, or maps and lists of them. */
    public static void finalResult(Object result) {
        Object output = result instanceof String ? result : json(result);
        ask("/log", "appended", null, Map.of("event_type", "final_result"), "output", output, "data", result);
    }
    /** Leaves an event in the run's log: output (a string), data (any value), code, reasoning, hasError, step. */
    public static void log(String type, Map<String, ?> map) { ask("/log", "appended", null, map, "event_type", type); }
    /** Calls a tool that was registered with the run. The answer is text, or else JSON. */
    public static String toolCall(String name, Object input) {
        return get(ask("/tool_call", "result", null, Map.of(), "tool_name", name, "input", input), "result");
    }
    /** A field of a JSON object: what a string holds, or JSON. Null for null and where it is missing. */
    public static String get(String object, String name) {
        String json = fields(object).getOrDefault('"' + name + '"', "null");
        return json.equals("null") ? null : json.startsWith("\"") ? text(json.substring(1, json.length() - 1)) : json;
    }
    private static String text(String q) {
        return Pattern.compile("\\\\(?:u(\\p{XDigit}{4})|([^u]))").matcher(q).replaceAll(m -> {
            int plain = m.group(2) == null ? -1 : "bfnrt".indexOf(m.group(2));
            String other = m.group(2) != null ? m.group(2) : (char) Integer.parseInt(m.group(1), 16) + "";
            return Matcher.quoteReplacement(plain < 0 ? other : "\b\f\n\r\t".charAt(plain) + "");
        });
    }
    private static Map<String, String> fields(String json) { // JSON by name; empty for what is no object, or not whole.
        Map<String, String> fields = new HashMap<>(); String name = "";
        for (int at = 0, from = 1, depth = 0; at < json.length() && json.startsWith("{"); at++) {
            char c = json.charAt(at);
            if (c == '"') while (json.length() > ++at && json.charAt(at) != '"') if (json.charAt(at) == '\\') at++;
            if (depth == 1 && c == ':') name = json.substring(from, at).strip();
            if (depth == 1 && (c == ',' || c == '}')) fields.put(name, json.substring(from, at).strip());
            if (depth == 1 && ":,}".indexOf(c) >= 0) from = at + 1;
            depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
            if (depth == 0) return fields;
        }
        return Map.of();
    }
    private static String ask(String path, String field, Consumer<String> take, Map<String, ?> options, Object... own) {
        String base = env("FANOUT_URL", "GATEWAY_URL", "http://127.0.0.1:8787").replaceAll("/+$", "");
        String token = env("FANOUT_TOKEN", "GATEWAY_TOKEN", "");
        if (token.isEmpty()) throw new FanoutException("no_token", "FANOUT_TOKEN is not set", 0, false);
        if (!base.matches("https?://[\\w./:~%\\[\\]-]+")) throw new FanoutException("bad_url", base, 0, false);
        int silenceMs = (int) (1000 * Double.parseDouble(env("FANOUT_TIMEOUT_S", "", "660")));
        Map<String, Object> body = new HashMap<>(options);
        for (int at = 0; at < own.length; at += 2) body.put((String) own[at], own[at + 1]);
        Object key = Objects.requireNonNullElse(body.remove("idempotency_key"), UUID.randomUUID()), lost = "cut";
        boolean isOnce = path.matches("/log|/tool_call|.*reset=1");
        for (long pauseMs : isOnce ? new long[] {0} : new long[] {0, 250, 500, 1000, 2000}) {
            java.util.concurrent.locks.LockSupport.parkNanos(pauseMs * 1_000_000);
            try {
                HttpURLConnection web = (HttpURLConnection) URI.create(base + path).toURL().openConnection();
                web.setConnectTimeout(silenceMs); web.setReadTimeout(silenceMs); web.setInstanceFollowRedirects(false);
                web.setRequestProperty("authorization", "Bearer " + token);
                web.setRequestProperty("content-type", "application/json");
                web.setRequestProperty("accept", "application/x-ndjson"); web.setDoOutput(own.length > 0);
                if (!isOnce) web.setRequestProperty("idempotency-key", key.toString());
                if (own.length > 0) web.getOutputStream().write(json(body).getBytes(UTF_8));
                int status = web.getResponseCode();
                InputStream bytes = status < 400 ? web.getInputStream() : web.getErrorStream();
                if (bytes == null) throw failure("{}", status);
                try (BufferedReader lines = new BufferedReader(new InputStreamReader(bytes, UTF_8))) {
                    for (String line; (line = lines.readLine()) != null; ) {
                        if ((line = line.strip()).isEmpty()) continue; // It kept the connection alive.
                        Map<String, String> fields = fields(line);
                        if (fields.isEmpty() && line.startsWith("{")) break; // Cut.
                        String type = get(line, "type");
                        boolean isError = "error".equals(type) || !"slot".equals(type) && get(line, "error") != null;
                        boolean isWhole = status < 300 && fields.containsKey('"' + field + '"');
                        if (isError || !isWhole) throw failure(line, status);
                        if (take == null || "group_completed".equals(type)) return line;
                        take.accept(line);
                    }
                }
                if (status > 299) throw failure("{}", status);
            } catch (SocketTimeoutException silence) { throw new FanoutException("timeout", "silence", 0, true);
            } catch (IOException cause) { lost = cause; }
        }
        throw new FanoutException("unreachable", "connection lost: " + lost, 0, true);
    }
    static { System.setProperty("sun.net.http.retryPost", "false"); } // Or Java would repeat a lost call unseen.
    private static FanoutException failure(String answer, int status) {
        String it = get(answer, "error");
        if (it == null) return new FanoutException("bad_answer", "unexpected answer: " + status, status, false);
        if (!it.startsWith("{")) return new FanoutException("tool_error", it, status, status == 408 || status == 503);
        int own = get(it, "status") == null ? status : Integer.parseInt(get(it, "status"));
        return new FanoutException(get(it, "code"), get(it, "message"), own, "true".equals(get(it, "retryable")));
    }
    private static String env(String name, String other, String fallback) {
        String value = Objects.toString(System.getenv(name), "").strip();
        return !value.isEmpty() ? value : other.isEmpty() ? fallback : env(other, "", fallback);
    }
    private static String json(Object o) {
        if (o instanceof Map) return ((Map<?, ?>) o).entrySet().stream()
            .map(e -> json(e.getKey() + "") + ":" + json(e.getValue())).collect(joining(",", "{", "}"));
        if (o instanceof List) return ((List<?>) o).stream().map(Fanout::json).collect(joining(",", "[", "]"));
        if (o == null || o instanceof Number || o instanceof Boolean) return o + "";
        return o.toString().chars().mapToObj(c -> c > 31 && c != '"' && c != '\\' ? (char) c + ""
            : String.format("\\u%04x", c)).collect(joining("", "\"", "\""));
    }
}
