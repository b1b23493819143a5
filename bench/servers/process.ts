/** Child processes of the bench: each is started once, and none outlives the bench. */
import { spawn } from "node:child_process";
import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** A running server under measurement. Disposing ends its process. What is said of the process includes those that it has started. */
export type Server = AsyncDisposable & {
  /** Without a trailing slash. */
  url: string;
  /** Resident memory of the process, bytes. */
  rssBytes: () => number;
  /** Processor time of the process so far, ms. */
  cpuMs: () => number;
  /** Threads of the process; absent = they are not counted. */
  threads?: () => number;
  /** The end of its output on stderr so far. */
  output: () => string;
};

/** What ends each program that still runs. */
const alive = new Set<() => void>();
let isWatching = false;

/** Has a signal end the bench by its exit handlers, which end its children: without it, a signal leaves them running. */
export function exitAtSignals(): void {
  if (isWatching) return;
  isWatching = true;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => process.exit(130));
  process.on("exit", () => {
    for (const kill of alive) kill();
  });
}

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

type Command = { command: string; args: readonly string[]; env: Record<string, string> };

export type Program = Command & {
  /** Finds the port that it listens on in what it has printed; null = not yet. */
  portIn: (printed: string) => number | null;
  /** Where it says that it listens. */
  prints: "stdout" | "stderr";
};

/** Starts a program and waits until it listens. Rejects with its output on stderr if it ends or prints no port. */
export async function startProgram({ portIn, prints, ...command }: Program): Promise<Server> {
  return await serverOf(spawned(command), (child) => {
    const { promise, resolve } = Promise.withResolvers<number>();
    let printed = "";
    child[prints].on("data", (data) => {
      printed = (printed + String(data)).slice(-OUTPUT_CHARS_MAX);
      const port = portIn(printed);
      if (port !== null) resolve(port);
    });
    return promise;
  });
}

/** A program that is told where to listen. */
export type ProgramOnPort = Command & {
  port: number;
  /** What it answers with a status below 500 as soon as it serves. */
  path: string;
};

/** Time between two questions whether a program serves, ms. */
const POLL_MS = 20;

/** Starts a program that does not say that it listens, and waits until it answers. */
export async function startOnPort({ port, path, ...command }: ProgramOnPort): Promise<Server> {
  return await serverOf(spawned(command), async (child) => {
    const isServing = async (): Promise<boolean> => {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`).catch(() => null);
      await answer?.body?.cancel();
      return answer !== null && answer.status < 500;
    };
    while (!(await isServing())) {
      if (child.exitCode !== null || child.signalCode !== null) return null;
      await sleep(POLL_MS);
    }
    return port;
  });
}

type Spawned = {
  command: Command;
  child: ChildProcessWithoutNullStreams;
  output: () => string;
  stop: () => Promise<void>;
};

/** A program in a process group of its own: what it starts itself ends with it. */
function spawned(command: Command): Spawned {
  exitAtSignals();
  const env = { ...process.env, ...command.env };
  const child = spawn(command.command, command.args, { stdio: ["pipe", "pipe", "pipe"], env, detached: true });
  const kill = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    } catch {
      // All of its processes have ended.
    }
  };
  alive.add(kill);
  const gone = once(child, "exit").catch(() => undefined);
  let output = "";
  child.stderr.on("data", (data) => (output = (output + String(data)).slice(-OUTPUT_CHARS_MAX)));
  // What nobody reads would fill its pipe, and the program would wait.
  child.stdout.resume();
  const stop = async (): Promise<void> => {
    kill();
    await gone;
    alive.delete(kill);
  };
  return { command, child, output: () => output, stop };
}

/** The server once it listens; a program that does not is ended. `listens` finds its port; null = it has ended. */
async function serverOf(
  { command: { command, args }, child, output, stop }: Spawned,
  listens: (child: ChildProcessWithoutNullStreams) => Promise<number | null>,
): Promise<Server> {
  const { promise: failed, reject } = Promise.withResolvers<never>();
  const fail = (why: string): void => reject(new Error(`${command} ${args.join(" ")} ${why}\n${output()}`));
  const timer = setTimeout(() => fail(`did not listen for ${START_MS_MAX} ms`), START_MS_MAX);
  child.once("error", (error) => fail(error.message));
  // Its last words may come after its end.
  child.once("close", (code) => fail(`ended with ${code}`));
  try {
    const port = (await Promise.race([listens(child), failed])) ?? (await failed);
    return {
      url: `http://127.0.0.1:${port}`,
      rssBytes: () => summed(child.pid, rssBytesOf),
      cpuMs: () => summed(child.pid, cpuMsOf),
      threads: () => summed(child.pid, threadsOf),
      output,
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await stop();
    throw error;
  } finally {
    clearTimeout(timer);
    failed.catch(() => undefined);
  }
}

/** A figure of a process and of all that it has started. */
function summed(pid: number | undefined, figure: (pid: number) => number): number {
  if (pid === undefined) return 0;
  return childrenOf(pid).reduce((sum, child) => sum + summed(child, figure), figure(pid));
}

/** The processes that a process has started; none where the system has no /proc. */
function childrenOf(pid: number | "self"): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((task) =>
      readFileSync(`/proc/${pid}/task/${task}/children`, "utf8")
        .split(" ")
        .filter((text) => text !== "")
        .map(Number),
    );
  } catch {
    return [];
  }
}

/** The workerd that Miniflare has started in this process; undefined where the system has no /proc. */
export function miniflarePid(): number | undefined {
  return childrenOf("self").find((pid) => {
    try {
      return readFileSync(`/proc/${pid}/comm`, "utf8").startsWith("workerd");
    } catch {
      // It has just ended.
      return false;
    }
  });
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

/** Threads of a process; 0 where the system has no /proc. */
export function threadsOf(pid: number | undefined): number {
  try {
    return readdirSync(`/proc/${pid}/task`).length;
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
