/** A workerd process that serves one configuration, and is started again whenever it ends by itself. */
import { spawn, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { createGunzip } from "node:zlib";
import { workerdCommand } from "./workerd-program.ts";

/** The name of the socket at which the configuration serves the gateway, on a port that workerd chooses. */
export const SOCKET = "gateway";

/** The descriptor on which workerd says which ports it listens on. */
const CONTROL_FD = 3;
/** Lines that explain why workerd did not start. */
const REASON_LINES_MAX = 50;
/** Time between starts of a workerd that does not last so long, ms: a full disk or memory needs a moment. */
const RESTART_PAUSE_MS = 1_000;
/** What workerd says of itself and no operator can act upon. */
const NOISE =
  /\$LLVM_SYMBOLIZER is not set|took recursive isolate lock|CODE_MOVED for unknown code block|^stack:( (0|[a-f\d]{4,})){3,}/;

export type WorkerdOptions = {
  /** The configuration in the binary form, compressed by gzip: it is kept for the next start. */
  configuration: Buffer;
  /** Further arguments of `workerd serve`. */
  args: readonly string[];
  /** Receives the Worker's console output and messages about workerd. */
  log: (line: string) => void;
};

export type Workerd = {
  /** Where it listens, or did before it ended. */
  address(): { host: string; port: number };
  /** Ends it at once. */
  stop(): Promise<void>;
};

/** Resolves once it listens; rejects with what it printed if it ends before. */
export async function startWorkerd(options: WorkerdOptions): Promise<Workerd> {
  const stopped = new AbortController();
  let current = await served(options);
  const keep = async (): Promise<void> => {
    for (;;) {
      const sinceMs = performance.now();
      await current.ended;
      // One that ends as soon as it listens would be started as fast as the machine can.
      const isShort = performance.now() - sinceMs < RESTART_PAUSE_MS;
      if (isShort && !stopped.signal.aborted) await sleep(RESTART_PAUSE_MS);
      const next = await servedAgain(options, stopped.signal);
      if (next === null) return;
      current = next;
      if (stopped.signal.aborted) next.kill();
      else options.log("workerd ended and was started again; open groups go on from the disk.");
    }
  };
  const kept = keep();
  return {
    address: () => ({ host: "127.0.0.1", port: current.port }),
    stop: async () => {
      stopped.abort();
      current.kill();
      await kept;
    },
  };
}

/** Tries until it listens; null once the gateway stops. */
async function servedAgain(options: WorkerdOptions, stopped: AbortSignal): Promise<Served | null> {
  while (!stopped.aborted) {
    try {
      return await served(options);
    } catch (error) {
      options.log(`workerd does not start again: ${error instanceof Error ? error.message : String(error)}`);
      await sleep(RESTART_PAUSE_MS);
    }
  }
  return null;
}

type Served = { port: number; ended: Promise<unknown>; kill: () => void };

async function served({ configuration, args, log }: WorkerdOptions): Promise<Served> {
  const { program, env } = workerdCommand();
  const fixed = ["serve", "--binary", "--experimental", `--control-fd=${CONTROL_FD}`];
  const child = spawn(program, [...fixed, ...args, "-"], {
    stdio: ["pipe", "pipe", "pipe", "pipe"],
    windowsHide: true,
    env: { ...process.env, ...env, TZ: "UTC" },
  });
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  const ended = new Promise<void>((resolve) => {
    const end = (): void => {
      process.off("exit", kill);
      resolve();
    };
    child.once("exit", end);
    child.once("error", (error) => {
      log(error.message);
      end();
    });
  });
  const said: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    createInterface(stream).on("line", (line) => {
      const message = messageOf(line);
      if (NOISE.test(message)) return;
      if (said.length < REASON_LINES_MAX) said.push(message);
      log(message);
    });
  }
  const unpacked = createGunzip();
  unpacked.end(configuration);
  // A workerd that ends before it has read all of it has failed, and says why.
  pipeline(unpacked, child.stdin).catch(() => undefined);
  const port = await Promise.race([portOf(child), ended.then(() => null)]);
  if (port === null) throw new Error(`workerd ended before it listened:\n${said.join("\n")}`);
  return { port, ended, kill };
}

/** The port at which it serves the gateway; null if it ends before it says so. */
async function portOf(child: ChildProcess): Promise<number | null> {
  const control = child.stdio[CONTROL_FD];
  if (!isReadable(control)) return null;
  for await (const line of createInterface(control)) {
    const event: unknown = JSON.parse(line);
    if (typeof event !== "object" || event === null || !("socket" in event) || !("port" in event)) continue;
    if (event.socket === SOCKET && typeof event.port === "number") return event.port;
  }
  return null;
}

function isReadable(stream: ChildProcess["stdio"][number] | undefined): stream is Readable {
  return stream !== null && stream !== undefined && "read" in stream;
}

/** The message of a line of workerd's structured log. What a crash writes has no structure, and is its own message. */
function messageOf(line: string): string {
  try {
    const entry: unknown = JSON.parse(line);
    const isEntry = typeof entry === "object" && entry !== null && "message" in entry;
    return isEntry && typeof entry.message === "string" ? entry.message : line;
  } catch {
    return line;
  }
}
