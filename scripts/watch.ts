/** `npm run watch -- RUN_ID`: shows the events of a run on the terminal. The exit status is 0 when the run has ended. */
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { readText } from "../cli/credential.ts";
import { Display } from "../cli/watch/display.ts";
import { type Ending, follow, type Listener } from "../cli/watch/follow.ts";
import { ownRun, type Source } from "../cli/watch/gateway.ts";
import { readLog } from "../cli/watch/log.ts";
import { type Setting, settingOf } from "../cli/watch/setting.ts";
import { printable } from "../cli/watch/text.ts";

/** Time between two frames, ms: ten per second look smooth and cost little. */
const FRAME_MS = 100;
/** Lines that may be buffered for the next frame: a long history is written while it is read. */
const BACKLOG_MAX = 1_000;

const terminal = process.stdout;
const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => stop.abort());
// The reader of the output, such as `head`, has closed the pipe.
terminal.on("error", () => process.exit(0));

process.exitCode = await main();

async function main(): Promise<number> {
  const setting = settingOf(process.argv.slice(2), { env: process.env, read: readText });
  if (typeof setting === "string") return fail(setting);
  const { gateway } = setting;
  const own =
    setting.runId === null ? await ownRun(gateway, fetch, stop.signal) : { ok: true as const, id: setting.runId };
  if (stop.signal.aborted) return 130;
  return own.ok ? show({ gateway, runId: own.id }, setting) : fail(own.problem.message);
}

async function show(source: Source, { once: justOnce, plain }: Setting): Promise<number> {
  const live = terminal.isTTY && !plain;
  const display = new Display({
    runId: printable(source.runId),
    style: live ? "live" : "plain",
    redraws: live && !justOnce,
    now: Date.now,
    size: () => ({ columns: terminal.columns || 80, rows: terminal.rows || 24 }),
  });
  // A terminal that was stopped with Ctrl-S would otherwise receive all frames that it missed.
  const ticker = setInterval(() => void (terminal.writableNeedDrain || terminal.write(display.frame())), FRAME_MS);
  const listener: Listener = {
    connected: () => display.connected(),
    lost: (why, delayMs) => display.lost(why, delayMs),
    events: async (events) => {
      display.events(events);
      if (display.backlog > BACKLOG_MAX && !terminal.write(display.frame())) await once(terminal, "drain");
    },
  };
  const { signal } = stop;
  let problem: string | null = null;
  try {
    problem = justOnce
      ? await readLog(source, { fetch, signal, onEvents: listener.events })
      : messageOf(await follow(source, { fetch, sleep }, { listener, signal }));
  } finally {
    clearInterval(ticker);
    terminal.write(display.close());
  }
  if (signal.aborted) return 130;
  return problem === null ? 0 : fail(problem);
}

function messageOf(ending: Ending): string | null {
  return ending.ended === "problem" ? ending.message : null;
}

async function sleep(delayMs: number, signal: AbortSignal): Promise<void> {
  // The sleep rejects when the signal aborts it; that is intended.
  await delay(delayMs, undefined, { signal }).catch(() => {});
}

function fail(message: string): number {
  console.error(message);
  return 1;
}
