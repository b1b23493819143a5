import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** Drives stubs/java/Fanout.java for the conformance test. */
public final class Driver {
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    public static void main(String[] args) {
        try {
            run(args[0], Arrays.asList(args).subList(1, args.length));
        } catch (Fanout.FanoutException e) {
            write("\u0015" + e.code + "\u001f" + (e.status == 0 ? "" : e.status) + "\u001f" + e.retryable);
        }
    }

    private static void run(String command, List<String> args) {
        switch (command) {
            case "query":
                write(Fanout.query(args.get(0), args.size() > 1 ? Map.of("model", args.get(1)) : Map.of()));
                break;
            case "batch":
                Fanout.batch(args, Map.of()).forEach(slot -> write(text(slot)));
                break;
            case "batch-model":
                Fanout.batch(args.subList(1, args.size()), Map.of("model", args.get(0))).forEach(slot -> write(text(slot)));
                break;
            case "stream":
                Fanout.stream(args, Map.of(), slot -> write(slot.index + "\u001f" + text(slot)));
                break;
            case "budget":
                write(Fanout.get(Fanout.get(Fanout.budget(), "usd"), "remaining"));
                break;
            case "usage":
                write(Fanout.get(Fanout.usage(false), "llm_calls"));
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
                write(Fanout.toolCall(args.get(0), Map.of(args.get(1), args.get(2))));
                break;
            default:
                throw new IllegalArgumentException("no command " + command);
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
