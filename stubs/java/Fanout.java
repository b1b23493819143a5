import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.math.BigDecimal;
import java.net.HttpURLConnection;
import java.net.SocketTimeoutException;
import java.net.URI;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.function.Consumer;

/**
 * Calls a fanout gateway from Java 11 or newer. One file without dependencies: copy it into your
 * sources.
 *
 * <pre>{@code
 * String answer = Fanout.query("What is 2 + 2?", "up/model");
 * List<Fanout.Slot> slots = Fanout.batch(prompts, Map.of("max_tokens", 200));
 * Fanout.stream(prompts, Map.of(), slot -> System.out.println(slot.index + ": " + slot.text));
 * try (Fanout.Run run = Fanout.withRun(Map.of("usd", 0.05))) {
 *   slots = run.batch(prompts); // Calls by run can spend 0.05 USD at most.
 * }
 * }</pre>
 *
 * <p>A string in second place is the model; a map has the gateway's request fields. {@code
 * idempotency_key} is sent as a header instead: a restarted program that repeats the call under the
 * same key gets the recorded answer at no cost.
 *
 * <p>Environment variables:
 *
 * <ul>
 *   <li>FANOUT_URL: the gateway's address (default http://127.0.0.1:8787); or GATEWAY_URL
 *   <li>FANOUT_TOKEN: the run token, which POST /runs returned; or GATEWAY_TOKEN
 *   <li>FANOUT_TIMEOUT_S: how long the gateway may be silent before a call fails (default 660)
 * </ul>
 *
 * <p>If the connection is lost, a request is repeated under the same key and is paid once. All
 * other retries happen in the gateway. {@code log} and {@code toolCall} are sent once.
 */
public final class Fanout {
  /** The waits before a request whose connection was lost is repeated. */
  private static final long[] RETRY_WAITS_MS = {250, 500, 1000, 2000};

  /** Longer than the gateway's own limit, so that its error message arrives. */
  private static final String TIMEOUT_S = "660";

  private static final List<String> BUDGET_FIELDS =
      List.of("usd", "calls", "prompt_tokens", "completion_tokens");

  /** Names this life of the program, so that a run that records can replay the one before. */
  private static final String EPOCH = UUID.randomUUID().toString();

  /** The run of FANOUT_TOKEN. */
  private static final Run OWN = new Run(null, null, null);

  static {
    // Else Java itself would repeat a POST whose connection was lost, also one with effects.
    System.setProperty("sun.net.http.retryPost", "false");
  }

  private Fanout() {}

  /** A failed call. */
  public static final class FanoutException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** The gateway's, or no_token, bad_url, unreachable, timeout, bad_answer, tool_error. */
    public final String code;

    /** The HTTP status, or 0 if there was no answer. */
    public final int status;

    /** Whether the same call may succeed later. */
    public final boolean retryable;

    /** How often a call was tried that was made, or null. */
    public final Integer attempts;

    /** What these attempts were charged, USD, or null. */
    public final Double chargedUsd;

    FanoutException(String code, String message, int status, boolean retryable) {
      this(code, message, status, retryable, Map.of());
    }

    FanoutException(String code, String message, int status, boolean retryable, Map<?, ?> facts) {
      super(message);
      this.code = code;
      this.status = status;
      this.retryable = retryable;
      Object tried = facts.get("attempts");
      Object charged = facts.get("charged_usd");
      this.attempts = tried instanceof Number ? ((Number) tried).intValue() : null;
      this.chargedUsd = charged instanceof Number ? ((Number) charged).doubleValue() : null;
    }
  }

  /**
   * The result for the prompt at an index: a text or an error. The other is null. With the option
   * schema, json is the value that fits it. The message is the whole message, if it has more than
   * text or the option include asks for it; else null.
   */
  public static final class Slot {
    public final int index;
    public final String text;
    public final Object json;
    public final Map<String, Object> message;
    public final FanoutException error;

    Slot(int index, Map<String, Object> event) {
      this.index = index;
      this.text = String.valueOf(event.get("result"));
      this.json = event.get("json");
      this.message = objectOf(event.get("message"));
      this.error = null;
    }

    Slot(int index, FanoutException error) {
      this.index = index;
      this.text = null;
      this.json = null;
      this.message = null;
      this.error = error;
    }
  }

  /** Answers one prompt. */
  public static String query(String prompt) {
    return OWN.query(prompt);
  }

  public static String query(String prompt, String model) {
    return OWN.query(prompt, model);
  }

  public static String query(String prompt, Map<String, ?> options) {
    return OWN.query(prompt, options);
  }

  /**
   * Answers one prompt with a value that fits a JSON Schema: maps, lists, strings, BigDecimal,
   * Boolean or null.
   */
  public static Object queryJson(String prompt, Map<String, ?> schema, Map<String, ?> options) {
    return OWN.queryJson(prompt, schema, options);
  }

  /**
   * Returns the whole message of an answer: content, tool_calls, … With the option tools of a chat
   * completion it may ask for them: sent back as one of the messages, with their results, it goes
   * on. Tools of the run go by their names: the gateway calls them itself, and the message is the
   * last of at most max_turns answers.
   */
  public static Map<String, Object> message(String prompt, Map<String, ?> options) {
    return OWN.message(prompt, options);
  }

  public static Map<String, Object> message(
      List<? extends Map<String, ?>> messages, Map<String, ?> options) {
    return OWN.message(messages, options);
  }

  /**
   * Runs a graph of tasks whose prompts refer to each other, such as id "b" with the prompt
   * "{{a.output}} …". The outputs of its last tasks are in the field outputs, by id.
   */
  public static Map<String, Object> dag(List<? extends Map<String, ?>> tasks) {
    return OWN.dag(tasks, Map.of());
  }

  public static Map<String, Object> dag(
      List<? extends Map<String, ?>> tasks, Map<String, ?> options) {
    return OWN.dag(tasks, options);
  }

  /**
   * Answers a prompt so many times and returns the vote: decided, winner, agreement, … The option
   * aggregate changes its rule.
   */
  public static Map<String, Object> vote(String prompt, int count, Map<String, ?> options) {
    return OWN.vote(prompt, count, options);
  }

  /**
   * Answers prompts at once, in their order. Throws if the whole request fails; each slot has an
   * error of its own.
   */
  public static List<Slot> batch(List<String> prompts) {
    return OWN.batch(prompts);
  }

  public static List<Slot> batch(List<String> prompts, String model) {
    return OWN.batch(prompts, model);
  }

  public static List<Slot> batch(List<String> prompts, Map<String, ?> options) {
    return OWN.batch(prompts, options);
  }

  /** Passes each slot to {@code each} as it ends. */
  public static void stream(List<String> prompts, String model, Consumer<Slot> each) {
    OWN.stream(prompts, model, each);
  }

  public static void stream(List<String> prompts, Map<String, ?> options, Consumer<Slot> each) {
    OWN.stream(prompts, options, each);
  }

  /**
   * Opens a child run: calls by it spend its budget. Use it in a try-with-resources statement: when
   * that ends, the child is closed and what it has not spent returns.
   *
   * <p>The settings usd, calls, prompt_tokens and completion_tokens are limits. They are reserved
   * in the budget of the run that opens the child; a limit that is left out becomes an equal split
   * of what remains there. Other settings are the fields of POST /runs.
   */
  public static Run withRun(Map<String, ?> settings) {
    return OWN.withRun(settings);
  }

  /**
   * Returns what is left of the run's budget, child runs included: usd, calls, prompt_tokens and
   * completion_tokens, each with limit, spent, reserved and remaining. The limit of an open child
   * is reserved, what a closed one spent is spent. Numbers are BigDecimal.
   */
  public static Map<String, Object> budget() {
    return OWN.budget();
  }

  /**
   * Returns what the run itself has used: llm_calls, input_tokens, output_tokens, cost (USD) and
   * calls_by_model. Child runs are not included; what they spent is in budget(). With reset,
   * counting then starts at zero.
   */
  public static Map<String, Object> usage(boolean reset) {
    return OWN.usage(reset);
  }

  /**
   * Records the program's result in the run's log: a string, number or boolean, or maps and lists
   * of them.
   */
  public static void finalResult(Object result) {
    OWN.finalResult(result);
  }

  /**
   * Appends an event to the run's log: output (a string), data (any value), code, reasoning,
   * hasError, step.
   */
  public static void log(String eventType, Map<String, ?> fields) {
    OWN.log(eventType, fields);
  }

  /**
   * Returns the result of a tool of the run: a string, BigDecimal or Boolean, or a map or list of
   * them, or null.
   */
  public static Object toolCall(String name, Object input) {
    return OWN.toolCall(name, input);
  }

  @SuppressWarnings("unchecked")
  private static Map<String, Object> objectOf(Object value) {
    return value instanceof Map ? (Map<String, Object>) value : null;
  }

  /** Options with their tools where the gateway takes them: definitions are for the model. */
  private static Map<String, Object> fieldsOf(Map<String, ?> options) {
    Map<String, Object> fields = new HashMap<>(options);
    Object tools = fields.get("tools");
    if (tools instanceof List && !((List<?>) tools).stream().allMatch(String.class::isInstance)) {
      Map<String, Object> params = new HashMap<>();
      Map<String, Object> given = objectOf(fields.remove("params"));
      params.putAll(given == null ? Map.of() : given);
      params.put("tools", fields.remove("tools"));
      fields.put("params", params);
    }
    return fields;
  }

  /** A run, with the functions of this file for it. */
  public static final class Run implements AutoCloseable {
    /** The id of a child run. */
    public final String id;

    /** The token of a child run, for another process: its FANOUT_TOKEN. */
    public final String token;

    private final Run parent;
    private boolean isClosed = false;

    private Run(Run parent, String id, String token) {
      this.parent = parent;
      this.id = id;
      this.token = token;
    }

    public String query(String prompt) {
      return query(prompt, Map.of());
    }

    public String query(String prompt, String model) {
      return query(prompt, Map.of("model", model));
    }

    public String query(String prompt, Map<String, ?> options) {
      Map<String, Object> fields = new HashMap<>(options);
      fields.put("prompt", prompt);
      return (String) exchange(token, "/query", fields, "text", null).get("text");
    }

    public Object queryJson(String prompt, Map<String, ?> schema, Map<String, ?> options) {
      Map<String, Object> fields = new HashMap<>(options);
      fields.put("prompt", prompt);
      fields.put("schema", schema);
      return exchange(token, "/query", fields, "json", null).get("json");
    }

    public Map<String, Object> message(String prompt, Map<String, ?> options) {
      return messageTo("prompt", prompt, options);
    }

    public Map<String, Object> message(
        List<? extends Map<String, ?>> messages, Map<String, ?> options) {
      return messageTo("messages", messages, options);
    }

    private Map<String, Object> messageTo(String field, Object asked, Map<String, ?> options) {
      Map<String, Object> fields = fieldsOf(options);
      fields.put(field, asked);
      fields.put("include", List.of("message"));
      return objectOf(exchange(token, "/query", fields, "message", null).get("message"));
    }

    public Map<String, Object> dag(List<? extends Map<String, ?>> tasks, Map<String, ?> options) {
      Map<String, Object> fields = new HashMap<>(options);
      fields.put("tasks", tasks);
      return exchange(token, "/dag", fields, "tasks", null);
    }

    @SuppressWarnings("unchecked")
    public Map<String, Object> vote(String prompt, int count, Map<String, ?> options) {
      Map<String, Object> fields = new HashMap<>(Map.of("aggregate", Map.of("strategy", "vote")));
      fields.putAll(options);
      fields.put("prompts", Collections.nCopies(count, prompt));
      Map<String, Object> answer = exchange(token, "/batch", fields, "aggregation", null);
      return (Map<String, Object>) answer.get("aggregation");
    }

    public List<Slot> batch(List<String> prompts) {
      return batch(prompts, Map.of());
    }

    public List<Slot> batch(List<String> prompts, String model) {
      return batch(prompts, Map.of("model", model));
    }

    public List<Slot> batch(List<String> prompts, Map<String, ?> options) {
      Slot[] slots = new Slot[prompts.size()];
      stream(prompts, options, slot -> slots[slot.index] = slot);
      return Arrays.asList(slots);
    }

    public void stream(List<String> prompts, String model, Consumer<Slot> each) {
      stream(prompts, Map.of("model", model), each);
    }

    public void stream(List<String> prompts, Map<String, ?> options, Consumer<Slot> each) {
      if (prompts.isEmpty()) {
        return;
      }
      Map<String, Object> fields = fieldsOf(options);
      fields.put("prompts", prompts);
      Set<Integer> seen = new HashSet<>(); // A repeated request streams all slots once more.
      Consumer<Map<String, Object>> take =
          event -> {
            int index =
                "slot".equals(event.get("type")) ? ((Number) event.get("index")).intValue() : -1;
            if (index < 0 || index >= prompts.size() || !seen.add(index)) {
              return;
            }
            Object error = event.get("error");
            each.accept(
                error == null ? new Slot(index, event) : new Slot(index, failure(error, 0)));
          };
      exchange(token, "/batch", fields, "type", take);
      if (seen.size() < prompts.size()) {
        throw failure(null, 200);
      }
    }

    public Run withRun(Map<String, ?> settings) {
      Map<String, Object> fields = new HashMap<>(settings);
      Map<String, Object> limits = new HashMap<>();
      for (String name : BUDGET_FIELDS) {
        if (fields.containsKey(name)) {
          limits.put(name, fields.remove(name));
        }
      }
      if (!limits.isEmpty()) {
        fields.put("budget", limits);
      }
      Map<String, Object> opened = exchange(token, "/runs", fields, "token", null);
      return new Run(this, (String) opened.get("id"), (String) opened.get("token"));
    }

    /** Closes a child run. What it has not spent returns to its parent. */
    @Override
    public void close() {
      if (parent == null || isClosed) {
        return;
      }
      isClosed = true;
      exchange(parent.token, "/runs/" + id + "/close", Map.of(), "status", null);
    }

    public Map<String, Object> budget() {
      return exchange(token, "/budget", null, "usd", null);
    }

    public Map<String, Object> usage(boolean reset) {
      return exchange(token, reset ? "/usage?reset=1" : "/usage", null, "llm_calls", null);
    }

    public void finalResult(Object result) {
      Map<String, Object> fields = new HashMap<>();
      fields.put("output", result instanceof String ? result : Json.write(result));
      fields.put("data", result);
      log("final_result", fields);
    }

    public void log(String eventType, Map<String, ?> fields) {
      Map<String, Object> event = new HashMap<>(fields);
      event.put("event_type", eventType);
      exchange(token, "/log", event, "appended", null);
    }

    public Object toolCall(String name, Object input) {
      Map<String, Object> fields = new HashMap<>();
      fields.put("tool_name", name);
      fields.put("input", input);
      return exchange(token, "/tool_call", fields, "result", null).get("result");
    }
  }

  /**
   * Sends a request, GET if fields is null, and repeats it if the connection is lost and that is
   * safe. Returns the answer, or the last event of a stream, whose others {@code take} receives.
   * Each object must have the field {@code expect}.
   */
  private static Map<String, Object> exchange(
      String childToken,
      String path,
      Map<String, ?> fields,
      String expect,
      Consumer<Map<String, Object>> take) {
    boolean isSafe = !List.of("/log", "/tool_call", "/usage?reset=1").contains(path);
    Request request = new Request(childToken, path, fields, isSafe);
    for (int attempt = 0; ; attempt++) {
      try {
        return request.send(expect, take);
      } catch (SocketTimeoutException cause) {
        throw new FanoutException("timeout", "the gateway is silent", 0, true);
      } catch (IOException cause) {
        if (!isSafe || attempt == RETRY_WAITS_MS.length) {
          throw new FanoutException("unreachable", "connection lost: " + cause, 0, true);
        }
      }
      sleep(RETRY_WAITS_MS[attempt]);
    }
  }

  private static void sleep(long waitMs) {
    try {
      Thread.sleep(waitMs);
    } catch (InterruptedException cause) {
      Thread.currentThread().interrupt();
      throw new FanoutException("unreachable", "interrupted while waiting for a retry", 0, true);
    }
  }

  private static final class Request {
    private final URI url;
    private final String token;
    private final String idempotencyKey;
    private final byte[] body;
    private final int timeoutMs;

    Request(String childToken, String path, Map<String, ?> fields, boolean isSafe) {
      String base = variable("URL", "http://127.0.0.1:8787").replaceAll("/+$", "");
      // With the /v1 that OpenAI's clients want, it is the same gateway.
      base = base.endsWith("/v1") ? base.substring(0, base.length() - 3) : base;
      token = childToken != null ? childToken : variable("TOKEN", "");
      if (token.isEmpty()) {
        String message = "FANOUT_TOKEN is not set: it is the token that POST /runs returns";
        throw new FanoutException("no_token", message, 0, false);
      }
      if (!base.matches("https?://[\\w./:~%\\[\\]-]+")) {
        String message = "FANOUT_URL must be an http:// or https:// address, not " + base;
        throw new FanoutException("bad_url", message, 0, false);
      }
      url = URI.create(base + path);
      Map<String, Object> sent = fields == null ? null : new HashMap<>(fields);
      Object key = sent == null ? null : sent.remove("idempotency_key");
      idempotencyKey = !isSafe ? null : key != null ? key.toString() : UUID.randomUUID().toString();
      body = sent == null ? null : Json.write(sent).getBytes(UTF_8);
      timeoutMs = (int) (1000 * Double.parseDouble(variable("TIMEOUT_S", TIMEOUT_S)));
    }

    /** Throws an IOException if the connection is lost. */
    Map<String, Object> send(String expect, Consumer<Map<String, Object>> take) throws IOException {
      HttpURLConnection connection = (HttpURLConnection) url.toURL().openConnection();
      connection.setConnectTimeout(timeoutMs);
      connection.setReadTimeout(timeoutMs);
      // A redirect would carry the token to another host.
      connection.setInstanceFollowRedirects(false);
      connection.setRequestProperty("authorization", "Bearer " + token);
      connection.setRequestProperty("content-type", "application/json");
      connection.setRequestProperty(
          "accept", take == null ? "application/json" : "application/x-ndjson");
      connection.setRequestProperty("x-fanout-epoch", EPOCH);
      if (idempotencyKey != null) {
        connection.setRequestProperty("idempotency-key", idempotencyKey);
      }
      if (body != null) {
        connection.setDoOutput(true);
        try (OutputStream output = connection.getOutputStream()) {
          output.write(body);
        }
      }
      int status = connection.getResponseCode();
      InputStream input = status < 400 ? connection.getInputStream() : connection.getErrorStream();
      if (input == null) {
        throw failure(null, status);
      }
      try (BufferedReader lines = new BufferedReader(new InputStreamReader(input, UTF_8))) {
        return read(lines, status, expect, take);
      }
    }
  }

  private static Map<String, Object> read(
      BufferedReader lines, int status, String expect, Consumer<Map<String, Object>> take)
      throws IOException {
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      if (line.isBlank()) { // It keeps the connection alive.
        continue;
      }
      Map<String, Object> answer = Json.readObject(line);
      if (answer == null && line.stripLeading().startsWith("{")) {
        throw new IOException("the answer ended within a line");
      }
      if (answer == null) {
        throw failure(null, status);
      }
      Object type = answer.get("type");
      boolean isError =
          "error".equals(type) || (answer.get("error") != null && !"slot".equals(type));
      if (isError || status > 299 || !answer.containsKey(expect)) {
        throw failure(answer.get("error"), status);
      }
      if (take == null || "group_completed".equals(type)) {
        return answer;
      }
      take.accept(answer);
    }
    if (status > 299) {
      throw failure(null, status);
    }
    throw new IOException("the answer ended before its last line");
  }

  /** The error in an answer: a map, a tool's text, or null if the answer is not as expected. */
  private static FanoutException failure(Object error, int status) {
    if (error instanceof String) {
      boolean retryable = status == 408 || status == 503;
      return new FanoutException("tool_error", (String) error, status, retryable);
    }
    if (!(error instanceof Map)) {
      String message = "unexpected answer with status " + status;
      return new FanoutException("bad_answer", message, status, false);
    }
    Map<?, ?> facts = (Map<?, ?>) error;
    Object ownStatus = facts.get("status");
    return new FanoutException(
        String.valueOf(facts.get("code")),
        String.valueOf(facts.get("message")),
        ownStatus instanceof Number ? ((Number) ownStatus).intValue() : status,
        Boolean.TRUE.equals(facts.get("retryable")),
        facts);
  }

  /** The variable FANOUT_name, or GATEWAY_name, or the default. */
  private static String variable(String name, String byDefault) {
    for (String prefix : List.of("FANOUT_", "GATEWAY_")) {
      String value = System.getenv(prefix + name);
      if (value != null && !value.isBlank()) {
        return value.strip();
      }
    }
    return byDefault;
  }

  /** JSON as maps, lists, strings, BigDecimal, Boolean and null. */
  private static final class Json {
    /** How deep a text may nest: more would overflow the stack. */
    private static final int DEPTH_MAX = 200;

    private final String text;
    private int at = 0;

    private Json(String text) {
      this.text = text;
    }

    /** The object that a text is; null if it is malformed or another value. */
    static Map<String, Object> readObject(String text) {
      Json json = new Json(text);
      try {
        if (!json.skip('{')) {
          return null;
        }
        Map<String, Object> object = json.object(0);
        json.skipSpace();
        return json.at == text.length() ? object : null;
      } catch (IllegalArgumentException | StringIndexOutOfBoundsException malformed) {
        return null;
      }
    }

    private Object value(int depth) {
      if (depth > DEPTH_MAX) {
        throw malformed();
      }
      if (skip('{')) {
        return object(depth);
      }
      if (skip('[')) {
        return list(depth);
      }
      if (skip('"')) {
        return string();
      }
      int from = at;
      while (at < text.length() && ",]} \t\r\n".indexOf(text.charAt(at)) < 0) {
        at++;
      }
      String word = text.substring(from, at);
      switch (word) {
        case "true":
          return true;
        case "false":
          return false;
        case "null":
          return null;
        default:
          return new BigDecimal(word);
      }
    }

    private Map<String, Object> object(int depth) {
      Map<String, Object> object = new LinkedHashMap<>();
      if (skip('}')) {
        return object;
      }
      do {
        expect('"');
        String name = string();
        expect(':');
        object.put(name, value(depth + 1));
      } while (skip(','));
      expect('}');
      return object;
    }

    private List<Object> list(int depth) {
      List<Object> list = new ArrayList<>();
      if (skip(']')) {
        return list;
      }
      do {
        list.add(value(depth + 1));
      } while (skip(','));
      expect(']');
      return list;
    }

    private String string() {
      StringBuilder string = new StringBuilder();
      for (char c = text.charAt(at++); c != '"'; c = text.charAt(at++)) {
        string.append(c == '\\' ? escaped(text.charAt(at++)) : c);
      }
      return string.toString();
    }

    private char escaped(char c) {
      switch (c) {
        case 'b':
          return '\b';
        case 'f':
          return '\f';
        case 'n':
          return '\n';
        case 'r':
          return '\r';
        case 't':
          return '\t';
        case 'u':
          at += 4;
          return (char) Integer.parseInt(text.substring(at - 4, at), 16);
        default:
          return c;
      }
    }

    private void expect(char sign) {
      if (!skip(sign)) {
        throw malformed();
      }
    }

    /** Skips a sign and the space before it, if it is next. */
    private boolean skip(char sign) {
      skipSpace();
      if (at < text.length() && text.charAt(at) == sign) {
        at++;
        return true;
      }
      return false;
    }

    private void skipSpace() {
      while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
        at++;
      }
    }

    private IllegalArgumentException malformed() {
      return new IllegalArgumentException("malformed JSON at position " + at);
    }

    static String write(Object value) {
      StringBuilder text = new StringBuilder();
      write(value, text);
      return text.toString();
    }

    private static void write(Object value, StringBuilder text) {
      String separator = "";
      if (value instanceof Map) {
        text.append('{');
        for (Map.Entry<?, ?> field : ((Map<?, ?>) value).entrySet()) {
          text.append(separator);
          writeString(String.valueOf(field.getKey()), text);
          text.append(':');
          write(field.getValue(), text);
          separator = ",";
        }
        text.append('}');
      } else if (value instanceof Iterable) {
        text.append('[');
        for (Object item : (Iterable<?>) value) {
          text.append(separator);
          write(item, text);
          separator = ",";
        }
        text.append(']');
      } else if (value == null || value instanceof Number || value instanceof Boolean) {
        text.append(value);
      } else {
        writeString(value.toString(), text);
      }
    }

    private static void writeString(String string, StringBuilder text) {
      text.append('"');
      for (char c : string.toCharArray()) {
        if (c == '"' || c == '\\') {
          text.append('\\').append(c);
        } else if (c < ' ') {
          text.append(String.format("\\u%04x", (int) c));
        } else {
          text.append(c);
        }
      }
      text.append('"');
    }
  }
}
