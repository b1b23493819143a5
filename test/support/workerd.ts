/** A workerd process serving one configuration: started, waited for, stopped, or killed as a crash would. */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import type { Readable } from "node:stream";
import { workerdProgram } from "../../scripts/local/workerd-program.ts";

export type Workerd = {
  url: string;
  pid: number;
  /** Null unless its arguments have `--inspector-addr`, which should name port 0. */
  inspectorUrl: string | null;
  /** The end of what it wrote to stderr so far. */
  output(): string;
  /** Sends it SIGTERM and waits until it has ended. */
  stop(): Promise<void>;
  /** SIGKILL: nothing gets to be flushed or said. Waits until the process is gone. */
  kill(): Promise<void>;
};

const OUTPUT_CHARS_MAX = 32_768;
/** Time workerd gets to end by itself, ms. It may wait for requests in flight. */
const STOP_MS = 3_000;
/** The descriptor on which workerd says which ports it listens on. */
const CONTROL_FD = 3;

/**
 * Serves the capnp file `configFile`, whose socket is called `http`. Resolves once it listens; rejects with what it
 * printed if it ends before.
 */
export async function serveWorkerd(configFile: string, args: readonly string[] = []): Promise<Workerd> {
  // The program itself: the package's launcher is a Node process that a SIGKILL would not pass on.
  const child = spawn(workerdProgram(), ["serve", `--control-fd=${CONTROL_FD}`, ...args, configFile], {
    stdio: ["ignore", "ignore", "pipe", "pipe"],
  });
  const exited = once(child, "exit");
  const dieWithParent = () => child.kill("SIGKILL");
  process.once("exit", dieWithParent);
  child.once("exit", () => process.off("exit", dieWithParent));
  const output = tail(child.stderr);
  const hasInspector = args.some((arg) => arg.startsWith("--inspector-addr"));
  const ports = await Promise.race([listeningPorts(child, hasInspector), exited.then(() => null)]);
  if (ports === null || child.pid === undefined) throw new Error(`workerd ended before it listened:\n${output()}`);
  const end = async (signal: NodeJS.Signals) => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill(signal);
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
    await exited;
    clearTimeout(timer);
  };
  return {
    url: `http://127.0.0.1:${ports.http}`,
    pid: child.pid,
    inspectorUrl: ports.inspector === null ? null : `http://127.0.0.1:${ports.inspector}`,
    output,
    stop: () => end("SIGTERM"),
    kill: () => end("SIGKILL"),
  };
}

/** The ports that it has chosen; null if it ends before it reports them. */
async function listeningPorts(
  child: ChildProcess,
  hasInspector: boolean,
): Promise<{ http: number; inspector: number | null } | null> {
  const control = child.stdio[CONTROL_FD];
  if (!control || !("setEncoding" in control)) return null;
  let text = "";
  for await (const piece of control.setEncoding("utf8")) {
    text += String(piece);
    const http = portIn(text, "listen");
    const inspector = portIn(text, "listen-inspector");
    if (http !== null && (inspector !== null || !hasInspector)) return { http, inspector };
  }
  return null;
}

function portIn(text: string, event: "listen" | "listen-inspector"): number | null {
  const said = new RegExp(`"event":"${event}".*?"port":(\\d+)`).exec(text);
  return said === null ? null : Number(said[1]);
}

function tail(stream: Readable | null): () => string {
  let text = "";
  stream?.setEncoding("utf8").on("data", (piece: string) => {
    text = (text + piece).slice(-OUTPUT_CHARS_MAX);
  });
  return () => text;
}
