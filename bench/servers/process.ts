/** Child processes of the bench: each is started once, and none outlives the bench. */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";

/** A running server under measurement. Disposing ends its process. */
export type Server = AsyncDisposable & {
  /** Without a trailing slash. */
  url: string;
  /** Resident memory of the process, bytes. */
  rssBytes: () => number;
  /** Processor time of the process so far, ms. */
  cpuMs: () => number;
  /** The end of its output on stderr so far. */
  output: () => string;
};

const alive = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of alive) child.kill("SIGKILL");
});
// Without these a signal ends the bench before its exit handlers, and so leaves its children running.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => process.exit(130));

/** Longest wait for a server to say that it listens, ms. Ours start within a second, LiteLLM's proxy within six. */
const START_MS_MAX = 60_000;
const OUTPUT_CHARS_MAX = 4_000;

/** Starts `node <args>`, which prints its port on stdout: see `startProgram`. */
export async function startNode(
  args: readonly string[],
  env: Record<string, string>,
  portIn: (printed: string) => number | null,
): Promise<Server> {
  return await startProgram({ command: process.execPath, args, env, portIn, prints: "stdout" });
}

export type Program = {
  command: string;
  args: readonly string[];
  env: Record<string, string>;
  /** Finds the port that it listens on in what it has printed; null = not yet. */
  portIn: (printed: string) => number | null;
  /** Where it says that it listens. */
  prints: "stdout" | "stderr";
};

/** Starts a program and waits until it listens. Rejects with its output on stderr if it ends or prints no port. */
export async function startProgram({ command, args, env, portIn, prints }: Program): Promise<Server> {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"], env: { ...process.env, ...env } });
  alive.add(child);
  child.once("exit", () => alive.delete(child));
  let output = "";
  child.stderr.on("data", (data) => (output = (output + String(data)).slice(-OUTPUT_CHARS_MAX)));
  const stop = async () => {
    if (!alive.has(child)) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  };
  const listening = new Promise<number>((resolve, reject) => {
    const fail = (why: string) => reject(new Error(`${command} ${args.join(" ")} ${why}\n${output}`));
    const timer = setTimeout(() => fail(`printed no port for ${START_MS_MAX} ms`), START_MS_MAX);
    child.once("error", (error) => fail(error.message));
    child.once("exit", (code) => fail(`ended with ${code}`));
    let printed = "";
    // What nobody reads would fill its pipe, and the program would wait.
    child.stdout.resume();
    child[prints].on("data", (data) => {
      printed = (printed + String(data)).slice(-OUTPUT_CHARS_MAX);
      const port = portIn(printed);
      if (port === null) return;
      clearTimeout(timer);
      resolve(port);
    });
  });
  try {
    const url = `http://127.0.0.1:${await listening}`;
    return {
      url,
      rssBytes: () => rssBytesOf(child.pid),
      cpuMs: () => cpuMsOf(child.pid),
      output: () => output,
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The workerd that Miniflare has started in this process; undefined where the system has no /proc. */
export function miniflarePid(): number | undefined {
  try {
    for (const task of readdirSync("/proc/self/task")) {
      const children = readFileSync(`/proc/self/task/${task}/children`, "utf8");
      for (const pid of children.split(" ").filter((text) => text !== ""))
        if (readFileSync(`/proc/${pid}/comm`, "utf8").startsWith("workerd")) return Number(pid);
    }
  } catch {
    // No /proc, or one of the children has just ended.
  }
  return undefined;
}

/** Resident memory of a process, bytes; 0 where the system has no /proc. */
export function rssBytesOf(pid: number | undefined): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) * 1_024;
  } catch {
    return 0;
  }
}

/** Processor time of a process so far, ms, all threads; 0 where the system has no /proc. Linux counts in ticks of 10 ms. */
export function cpuMsOf(pid: number | undefined): number {
  try {
    // The name of the program, in parentheses, may have spaces.
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /s, "")
      .split(" ");
    return (Number(fields[11]) + Number(fields[12])) * 10;
  } catch {
    return 0;
  }
}

/** A loopback port that nothing listens on now, for programs of others that cannot report which one they were given. */
export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  if (address === null || typeof address === "string") throw new Error("a TCP socket has no port");
  return address.port;
}
