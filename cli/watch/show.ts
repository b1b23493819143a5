/** Shows the events of a run on the terminal: what `fanout watch` and `npm run watch` do. */
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import type { Surroundings } from "../command.ts";
import { Failure } from "../failure.ts";
import { printable } from "../text/printable.ts";
import { Display } from "./display.ts";
import type { Ending } from "./follow.ts";
import { ownRunId } from "../gateway/requests.ts";
import type { Source } from "./source.ts";
import { type Setting, settingOf } from "./setting.ts";
import { followTree, readTree, type TreeListener } from "./tree.ts";

/** Time between two frames, ms: ten per second look smooth and cost little. */
const FRAME_MS = 100;
/** Lines that may be buffered for the next frame: a long history is written while it is read. */
const BACKLOG_MAX = 1_000;

type Around = Pick<Surroundings, "env" | "read" | "stderr" | "signal">;

/** Shows the run that the arguments name. Resolves with the exit status: 0 when the run has ended. */
export async function showRun(args: readonly string[], around: Around): Promise<number> {
  const { signal } = around;
  try {
    const setting = settingOf(args, around);
    // The reader of the output, such as `head`, has closed the pipe.
    process.stdout.on("error", () => process.exit(0));
    const { gateway } = setting;
    const runId = setting.runId ?? (await ownRunId(gateway, signal));
    const problem = await show({ gateway, runId }, setting, signal);
    if (signal.aborted) return 130;
    return problem === null ? 0 : fail(problem, around);
  } catch (error) {
    if (signal.aborted) return 130;
    if (error instanceof Failure) return fail(error.message, around);
    throw error;
  }
}

/** Resolves with what went wrong, or null. */
async function show(source: Source, setting: Setting, signal: AbortSignal): Promise<string | null> {
  const { once: justOnce, plain, tree: below } = setting;
  const terminal = process.stdout;
  const live = terminal.isTTY && !plain;
  const display = new Display({
    runId: printable(source.runId),
    style: live ? "live" : "plain",
    redraws: live && !justOnce,
    tree: below,
    now: Date.now,
    size: () => ({ columns: terminal.columns || 80, rows: terminal.rows || 24 }),
  });
  // A terminal that was stopped with Ctrl-S would otherwise receive all frames that it missed.
  const ticker = setInterval(() => void (terminal.writableNeedDrain || terminal.write(display.frame())), FRAME_MS);
  const listener: TreeListener = {
    connected: (run) => display.connected(run),
    lost: (run, why, delayMs) => display.lost(why, delayMs, run),
    left: (run, problem) => display.left(run, problem),
    events: async (run, events) => {
      display.events(events, run);
      if (display.backlog > BACKLOG_MAX && !terminal.write(display.frame())) await once(terminal, "drain");
    },
  };
  try {
    return justOnce
      ? await readTree(source, { below, fetch, signal, onEvents: listener.events })
      : messageOf(await followTree(source, { fetch, sleep }, { below, listener, signal }));
  } finally {
    clearInterval(ticker);
    terminal.write(display.close());
  }
}

function messageOf(ending: Ending): string | null {
  return ending.ended === "problem" ? ending.message : null;
}

async function sleep(delayMs: number, signal: AbortSignal): Promise<void> {
  // The sleep rejects when the signal aborts it; that is intended.
  await delay(delayMs, undefined, { signal }).catch(() => {});
}

function fail(message: string, { stderr }: Around): number {
  stderr(`${message}\n`);
  return 1;
}
