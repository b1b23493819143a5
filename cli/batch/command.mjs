/** `fanout batch`: sends a file of prompts as one batch, and writes its answers in order. */
import { addAbortSignal } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { Api } from "./server/api.mjs";
import { cancelBatch } from "./cancel.mjs";
import { Display } from "./display.mjs";
import { printable, shellWord } from "../text/printable.mjs";
import { durationText } from "./progress.mjs";
import { runBatch } from "./run.mjs";
import { settingOf } from "./setting.mjs";
import { USAGE } from "./usage.mjs";

/** @type {import("../commands.mjs").Command} */
export async function batch(args, surroundings) {
  const setting = settingOf(args, surroundings);
  if (setting !== "help") return await send(setting, surroundings);
  surroundings.stdout(USAGE);
  return 0;
}

/**
 * @param {import("./setting.mjs").Setting} setting
 * @param {import("../commands.mjs").Surroundings} surroundings
 */
async function send(setting, { stdout, stderr, columns, isLive, signal }) {
  const display = new Display({ write: stderr, columns, live: isLive, quiet: setting.quiet });
  const sleep = (/** @type {number} */ delayMs) => delay(delayMs, undefined, { signal });
  /** @type {string | null} */
  let batchId = null;
  const trouble = (/** @type {string} */ message, /** @type {number} */ delayMs) =>
    display.note(`! ${message} Retrying in ${durationText(delayMs)}.`);
  const api = new Api(setting.server, { sleep, random: Math.random, trouble, signal });
  try {
    const { input } = setting;
    if (input === null) return await cancelBatch(setting, { api, display, stdout });
    const batchIs = (/** @type {string} */ id) => void (batchId = id);
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

/**
 * @param {string | null} batchId
 * @param {string} output
 */
function stoppedText(batchId, output) {
  if (batchId === null) return "Stopped. Run the same command again to continue.";
  return (
    `Stopped. Batch ${printable(batchId)} is still running; run the same command again to continue. To cancel it:\n` +
    `  fanout batch --cancel -o ${shellWord(output)}`
  );
}

/** The exit status of the command's caller replaces it by that of the signal. */
const STOPPED = 130;
