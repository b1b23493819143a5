/** `fanout batch`: sends a file of prompts as one batch, and writes its answers in order. */
import { addAbortSignal } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { Api } from "./server/api.ts";
import { cancelBatch } from "./cancel.ts";
import { Display } from "./display.ts";
import { printable, shellWord } from "../text/printable.ts";
import { durationText } from "../text/amounts.ts";
import { runBatch } from "./run.ts";
import { settingOf, type Setting } from "./setting.ts";
import { USAGE } from "./usage.ts";
import type { Surroundings } from "../command.ts";

export async function batch(args: string[], surroundings: Surroundings): Promise<number> {
  const setting = settingOf(args, surroundings);
  if (setting !== "help") return await send(setting, surroundings);
  surroundings.stdout(USAGE);
  return 0;
}

async function send(setting: Setting, { stdout, stderr, columns, isLive, signal }: Surroundings) {
  const display = new Display({ write: stderr, columns, live: isLive, quiet: setting.quiet });
  const sleep = (delayMs: number) => delay(delayMs, undefined, { signal });
  let batchId: string | null = null;
  const trouble = (message: string, delayMs: number) =>
    display.note(`! ${message} Retrying in ${durationText(delayMs)}.`);
  const api = new Api(setting.server, { sleep, random: Math.random, trouble, signal });
  try {
    const { input } = setting;
    if (input === null) return await cancelBatch(setting, { api, display, stdout });
    const batchIs = (id: string) => void (batchId = id);
    const deps = {
      api,
      display,
      stdout,
      stdin: () => addAbortSignal(signal, process.stdin),
      sleep,
      now: Date.now,
      signal,
      batchIs,
    };
    return await runBatch({ ...setting, input }, deps);
  } catch (error) {
    if (!signal.aborted) throw error;
    display.error(stoppedText(batchId, setting.output));
    return STOPPED;
  } finally {
    display.clear();
  }
}

function stoppedText(batchId: string | null, output: string) {
  if (batchId === null) return "Stopped. Run the same command again to continue.";
  return (
    `Stopped. Batch ${printable(batchId)} is still running; run the same command again to continue. To cancel it:\n` +
    `  fanout batch --cancel -o ${shellWord(output)}`
  );
}

/** The exit status of the command's caller replaces it by that of the signal. */
const STOPPED = 130;
