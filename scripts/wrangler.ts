/**
 * Runs `wrangler dev` so that it asks nothing, reports nothing to anyone and leaves nothing running.
 * Its process, its own child and workerd form one process group; signals go to the whole group.
 */
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { constants } from "node:os";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { forwardWithoutTokens } from "./redact-tokens.ts";

/** The checkout: where wrangler.toml and .dev.vars are. */
export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));

/** Time that wrangler gets to end its runtime before the group is killed, ms. */
const STOP_MS = 5_000;

/** Quiet wrangler: no telemetry, no error reports, no look for updates, no look-up of where this machine is. */
const QUIET_ENV = {
  WRANGLER_SEND_METRICS: "false",
  WRANGLER_SEND_ERROR_REPORTS: "false",
  WRANGLER_HIDE_BANNER: "true",
  CLOUDFLARE_CF_FETCH_ENABLED: "false",
};

export type Wrangler = {
  /** Resolves with the exit status; 128 + the signal's number where a signal ended it. */
  exited: Promise<number>;
  /** All it printed so far. */
  output(): string;
  /** From now on its output goes to this process's own. */
  show(): void;
  /** Whether `stop` was called. */
  stopping(): boolean;
  /** Sends a signal to the group, kills what is left after 5 s; resolves as `exited`. */
  stop(signal?: NodeJS.Signals): Promise<number>;
};

export function startWrangler(args: readonly string[], env: Record<string, string> = {}): Wrangler {
  // Its program itself: the launcher around it dies of a signal before the program has ended the runtime. The `--`
  // keeps Node from taking `--env-file` for its own.
  const program = createRequire(import.meta.url).resolve("wrangler");
  const command = ["--no-warnings", "--", program, "dev", ...args, "--show-interactive-dev-session=false"];
  const child = spawn(process.execPath, command, {
    cwd: ROOT,
    env: { ...process.env, ...QUIET_ENV, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  let shown = false;
  let text = "";
  const forward = (target: NodeJS.WriteStream) => (piece: string) => {
    if (shown) target.write(piece);
    else text += piece;
  };
  forwardWithoutTokens(child.stdout, forward(process.stdout));
  forwardWithoutTokens(child.stderr, forward(process.stderr));

  const signalGroup = (signal: NodeJS.Signals) => {
    if (child.pid === undefined) return;
    try {
      process.kill(-child.pid, signal);
    } catch {
      // The group has ended already.
    }
  };
  const exited = new Promise<number>((resolve) => {
    child.once("error", (error) => {
      text += `${error.message}\n`;
      resolve(1);
    });
    child.once("exit", (code, signal) => {
      // The runtime may outlive a wrangler that crashed.
      signalGroup("SIGKILL");
      resolve(code ?? 128 + signalNumber(signal));
    });
  });
  let stopped = false;
  const stop = async (signal: NodeJS.Signals = "SIGTERM") => {
    stopped = true;
    signalGroup(signal);
    const late = setTimeout(() => signalGroup("SIGKILL"), STOP_MS);
    const status = await exited;
    clearTimeout(late);
    return status;
  };
  return { exited, output: () => text, show: () => void (shown = true), stopping: () => stopped, stop };
}

function signalNumber(signal: NodeJS.Signals | null): number {
  return signal === null ? 0 : constants.signals[signal];
}
