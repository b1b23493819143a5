import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.stream.Collectors;

/** Drives stubs/java/Fanout.java for the conformance test. */
public final class Driver {
  private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

  public static void main(String[] args) {
    try {
      run(args[0], Arrays.asList(args).subList(1, args.length));
    } catch (Fanout.FanoutException e) {
      String status = e.status == 0 ? "" : String.valueOf(e.status);
      String used = e.attempts == null ? "\u001f" : e.attempts + "\u001f" + e.chargedUsd;
      write("\u0015" + e.code + "\u001f" + status + "\u001f" + e.retryable + "\u001f" + used);
    }
  }

  private static void run(String command, List<String> args) {
    switch (command) {
      case "query":
        write(args.size() > 1 ? Fanout.query(args.get(0), args.get(1)) : Fanout.query(args.get(0)));
        break;
      case "batch":
        Fanout.batch(args).forEach(slot -> write(text(slot)));
        break;
      case "batch-model":
        Fanout.batch(args.subList(1, args.size()), args.get(0)).forEach(slot -> write(text(slot)));
        break;
      case "stream":
        Fanout.stream(args, Map.of(), slot -> write(slot.index + "\u001f" + text(slot)));
        break;
      case "json":
        write(n(Fanout.queryJson(args.get(0), SCHEMA, Map.of())));
        break;
      case "batch-json":
        Fanout.batch(args, Map.of("schema", SCHEMA))
            .forEach(slot -> write(slot.error == null ? n(slot.json) : text(slot)));
        break;
      case "message":
        message(args.get(0), args.get(1));
        break;
      case "messages":
        Map<String, Object> batchOptions = new HashMap<>(MUST);
        batchOptions.putAll(Map.of("model", args.get(0), "include", List.of("message")));
        Fanout.batch(args.subList(1, args.size()), batchOptions)
            .forEach(slot -> write(slot.error == null ? nameOf(slot.message) : text(slot)));
        break;
      case "agent":
        List<String> names = List.of(args.get(1));
        Map<String, Object> turns = Map.of("model", args.get(0), "tools", names, "max_turns", 4);
        write(String.valueOf(Fanout.message(args.get(2), turns).get("content")));
        break;
      case "dag":
        Map<String, String> first = Map.of("id", "a", "prompt", args.get(0));
        Map<String, String> second = Map.of("id", "b", "prompt", "{{a.output}} and two");
        Object outputs = Fanout.dag(List.of(first, second)).get("outputs");
        write(String.valueOf(((Map<?, ?>) outputs).get("b")));
        break;
      case "vote":
        Map<String, Object> vote =
            Fanout.vote(args.get(1), Integer.parseInt(args.get(0)), Map.of());
        write(vote.get("winner") + "\u001f" + vote.get("votes"));
        break;
      case "budget":
        write(String.valueOf(((Map<?, ?>) Fanout.budget().get("usd")).get("remaining")));
        break;
      case "usage":
        write(String.valueOf(Fanout.usage(false).get("llm_calls")));
        break;
      case "final":
        Fanout.finalResult(args.get(0));
        write("ok");
        break;
      case "log":
        Fanout.log(args.get(0), Map.of(args.get(1), args.get(2)));
        write("ok");
        break;
      case "tool":
        write((String) Fanout.toolCall(args.get(0), Map.of(args.get(1), args.get(2))));
        break;
      case "child":
        try (Fanout.Run run = Fanout.withRun(Map.of("calls", Integer.valueOf(args.get(0))))) {
          args.subList(1, args.size()).forEach(prompt -> write(run.query(prompt)));
        }
        break;
      case "nested":
        nested(args.get(0));
        break;
      case "children":
        children(args).forEach(Driver::write);
        break;
      default:
        throw new IllegalArgumentException("no command " + command);
    }
  }

  private static final Map<String, Object> SCHEMA =
      Map.of(
          "type", "object",
          "properties", Map.of("n", Map.of("type", "integer")),
          "required", List.of("n"));

  private static final Map<String, Object> TOOL =
      Map.of("type", "function", "function", Map.of("name", "double", "parameters", SCHEMA));

  private static final Map<String, Object> MUST =
      Map.of("tools", List.of(TOOL), "params", Map.of("tool_choice", "required"));

  private static void message(String model, String prompt) {
    Map<String, Object> options = new HashMap<>(MUST);
    options.put("model", model);
    Map<String, Object> asked = Fanout.message(prompt, options);
    Object id = firstCall(asked).get("id");
    List<Map<String, Object>> messages =
        List.of(
            Map.of("role", "user", "content", prompt),
            asked,
            Map.of("role", "tool", "tool_call_id", id, "content", "8"),
            Map.of("role", "user", "content", "done"));
    Object answer = Fanout.message(messages, Map.of("model", model)).get("content");
    write(nameOf(asked) + "\u001f" + answer);
  }

  private static Map<?, ?> firstCall(Map<String, Object> message) {
    return (Map<?, ?>) ((List<?>) message.get("tool_calls")).get(0);
  }

  private static String nameOf(Map<String, Object> message) {
    return String.valueOf(((Map<?, ?>) firstCall(message).get("function")).get("name"));
  }

  private static String n(Object json) {
    return String.valueOf(((Map<?, ?>) json).get("n"));
  }

  private static void nested(String prompt) {
    try (Fanout.Run child = Fanout.withRun(Map.of("calls", 4))) {
      write(child.query(prompt));
      try (Fanout.Run grandchild = child.withRun(Map.of("calls", 1))) {
        write(grandchild.query(prompt));
      }
      write(child.query(prompt));
    }
    write(Fanout.query(prompt));
  }

  private static List<String> children(List<String> prompts) {
    List<CompletableFuture<String>> answers =
        prompts.stream()
            .map(prompt -> CompletableFuture.supplyAsync(() -> queryInChild(prompt)))
            .collect(Collectors.toList());
    try {
      return answers.stream().map(CompletableFuture::join).collect(Collectors.toList());
    } catch (CompletionException e) {
      throw (Fanout.FanoutException) e.getCause();
    }
  }

  private static String queryInChild(String prompt) {
    try (Fanout.Run run = Fanout.withRun(Map.of("calls", 1))) {
      return run.query(prompt);
    }
  }

  private static String text(Fanout.Slot slot) {
    return slot.error == null ? slot.text : "[error] " + slot.error.getMessage();
  }

  private static void write(String record) {
    OUT.print(record + "\u001e");
    OUT.flush();
  }
}
