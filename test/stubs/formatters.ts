/** The formatter of each language, in its own default style. JavaScript and TypeScript are in `npm run check`. */
import { join } from "node:path";
import { ROOT, RUNTIMES, type Command } from "./language.ts";

export type Formatter = {
  name: string;
  /** Succeeds if the formatter is on this machine. */
  needs: readonly Command[];
  /** Reads a program on standard input and writes it formatted to standard output. */
  run: Command;
  /** What it formats, from the repository's root. */
  files: readonly [string, ...string[]];
};

const JAVA_JAR = join(RUNTIMES, "node_modules/google-java-format/lib/google-java-format-1.25.2-all-deps.jar");

export const FORMATTERS: readonly Formatter[] = [
  {
    name: "ruff",
    needs: [["test", "-d", join(RUNTIMES, "node_modules/@astral-sh/ruff-wasm-nodejs")]],
    // Compiled plainly, its WebAssembly starts in half the time.
    run: [process.execPath, "--liftoff-only", join(ROOT, "test/stubs/ruff.mjs"), RUNTIMES],
    files: [
      "stubs/python/fanout.py",
      "stubs/python-async/fanout_async.py",
      "stubs/pyodide/fanout_pyodide.py",
      "test/stubs/drivers/python.py",
      "test/stubs/drivers/python-async.py",
      "test/clients/packages/program.py",
    ],
  },
  {
    name: "gofmt",
    needs: [["gofmt", "-h"]],
    run: ["gofmt"],
    files: ["stubs/go/fanout.go", "test/stubs/drivers/go.go"],
  },
  {
    name: "rustfmt",
    needs: [["rustfmt", "--version"]],
    run: ["rustfmt", "--edition", "2021"],
    files: ["stubs/rust/fanout.rs", "test/stubs/drivers/rust.rs"],
  },
  {
    name: "google-java-format",
    needs: [
      ["java", "-version"],
      ["test", "-e", JAVA_JAR],
    ],
    // It ends before code is worth compiling twice.
    run: ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-jar", JAVA_JAR, "-"],
    files: ["stubs/java/Fanout.java", "test/stubs/drivers/java.java"],
  },
  {
    name: "shfmt",
    needs: [["shfmt", "--version"]],
    run: ["shfmt", "-i", "2", "-ci"],
    files: ["stubs/bash/fanout.sh", "test/stubs/drivers/bash.sh"],
  },
  {
    name: "perltidy",
    needs: [["perltidy", "--version"]],
    run: ["perltidy", "-npro", "-l=120", "-st", "-se"],
    files: ["stubs/perl/Fanout.pm", "test/stubs/drivers/perl.pl"],
  },
  {
    name: "phpcbf",
    needs: [["phpcbf", "--version"]],
    // It ends with 1 if it wrote a file that it has nothing left to fix in.
    run: ["sh", "-c", "phpcbf -q --standard=PSR12 - || [ $? = 1 ]"],
    files: ["stubs/php/fanout.php", "test/stubs/drivers/php.php"],
  },
  {
    name: "rubocop",
    needs: [["rubocop", "--version"]],
    // It reports what it corrected on standard error.
    run: [
      "sh",
      "-c",
      "rubocop --only Layout --autocorrect --stdin stub.rb --stderr --format quiet --cache false 2>/dev/null",
    ],
    files: ["stubs/ruby/fanout.rb", "test/stubs/drivers/ruby.rb"],
  },
  {
    name: "StyLua",
    needs: [["test", "-d", join(RUNTIMES, "node_modules/@johnnymorganz/stylua")]],
    run: [process.execPath, join(ROOT, "test/stubs/stylua.mjs"), RUNTIMES],
    files: ["stubs/lua/fanout.lua", "test/stubs/drivers/lua.lua"],
  },
];
