/** `fanout COMMAND`, for Node 20 and newer. */
import { COMMANDS, USAGE } from "./commands.ts";
import { readText } from "./credential.ts";
import { Failure } from "./failure.ts";
import { printable } from "./text/printable.ts";

const EXIT_OF_SIGNAL = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

const terminal = process.stderr;
// Bound before a script can be loaded: `run --json` keeps the script away from standard output.
const writeOut = process.stdout.write.bind(process.stdout);
const stop = new AbortController();
let stoppedWith: number | null = null;
for (const [signal, exitCode] of Object.entries(EXIT_OF_SIGNAL)) {
  process.on(signal, () => {
    // A second signal ends the command at once.
    if (stoppedWith !== null) process.exit(exitCode);
    stoppedWith = exitCode;
    stop.abort();
  });
}
// The reader of the progress may close the pipe; the command continues.
terminal.on("error", () => {});
process.stdout.on("error", () => {});

process.exitCode = await main(process.argv.slice(2));

async function main(args: string[]) {
  const [name, ...rest] = args;
  if (name === undefined || name === "--help" || name === "-h" || name === "help") {
    process.stdout.write(USAGE);
    return name === undefined ? 1 : 0;
  }
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command === undefined) return fail(`Unknown command: ${printable(name)}. For help, run: fanout --help`);
  try {
    const execute = await command.load();
    const status = await execute(rest, {
      env: { ...process.env },
      read: readText,
      stdout: (text) => void writeOut(text),
      stderr: (text) => void terminal.write(text),
      columns: () => terminal.columns || 80,
      isLive: terminal.isTTY && process.env["TERM"] !== "dumb",
      isScreen: process.stdout.isTTY && process.env["TERM"] !== "dumb",
      signal: stop.signal,
    });
    return stoppedWith ?? status;
  } catch (error) {
    if (stoppedWith !== null) return stoppedWith;
    if (error instanceof Failure) return fail(error.message, error.exitCode);
    // An error of the operating system, such as a full disk or a missing permission: its message is clear enough.
    if (error instanceof Error && "syscall" in error) return fail(printable(error.message));
    throw error;
  }
}

function fail(message: string, exitCode = 1): number {
  terminal.write(`${message}\n`);
  return exitCode;
}
