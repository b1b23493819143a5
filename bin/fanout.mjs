#!/usr/bin/env node
/** `fanout batch prompts.jsonl -o out.jsonl`. Plain JavaScript without dependencies, for Node 20 and newer. */
import { readFileSync } from "node:fs";
import { addAbortSignal } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { Api } from "./batch/server/api.mjs";
import { cancelBatch } from "./batch/cancel.mjs";
import { Display } from "./batch/display.mjs";
import { Failure } from "./batch/failure.mjs";
import { printable, shellWord } from "./batch/printable.mjs";
import { durationText } from "./batch/progress.mjs";
import { runBatch } from "./batch/run.mjs";
import { settingOf } from "./batch/setting.mjs";
import { USAGE } from "./batch/usage.mjs";

const EXIT_OF_SIGNAL = /** @type {const} */ ({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 });

const terminal = process.stderr;
const stop = new AbortController();
/** @type {number | null} */
let stoppedWith = null;
for (const [signal, exitCode] of Object.entries(EXIT_OF_SIGNAL)) {
  process.on(signal, () => {
    // A second signal ends the command at once.
    if (stoppedWith !== null) process.exit(exitCode);
    stoppedWith = exitCode;
    stop.abort();
  });
}
// The reader of the progress may close the pipe; the batch continues.
terminal.on("error", () => {});
process.stdout.on("error", () => {});

process.exitCode = await main(process.argv.slice(2));

/** @param {string[]} args */
async function main(args) {
  const [command, ...rest] = args;
  if (command === undefined || command === "--help" || command === "-h" || command === "help") {
    process.stdout.write(USAGE);
    return command === undefined ? 1 : 0;
  }
  if (command !== "batch") return fail(`Unknown command: ${printable(command)}. For help, run: fanout --help`);
  try {
    const setting = settingOf(rest, { env: process.env, readFile: (path) => readFileSync(path, "utf8") });
    if (setting === "help") {
      process.stdout.write(USAGE);
      return 0;
    }
    return await batch(setting);
  } catch (error) {
    if (error instanceof Failure) return fail(error.message);
    // An error of the operating system, such as a full disk or a missing permission: its message is clear enough.
    if (error instanceof Error && "syscall" in error) return fail(printable(error.message));
    throw error;
  }
}

/** @param {import("./batch/setting.mjs").Setting} setting */
async function batch(setting) {
  const { signal } = stop;
  const display = new Display({
    write: (text) => void terminal.write(text),
    columns: () => terminal.columns || 80,
    live: terminal.isTTY && process.env["TERM"] !== "dumb",
    quiet: setting.quiet,
  });
  const sleep = (/** @type {number} */ delayMs) => delay(delayMs, undefined, { signal });
  /** @type {string | null} */
  let batchId = null;
  const trouble = (/** @type {string} */ message, /** @type {number} */ delayMs) =>
    display.note(`! ${message} Retrying in ${durationText(delayMs)}.`);
  const api = new Api(setting.server, { sleep, random: Math.random, trouble, signal });
  try {
    const { input } = setting;
    if (input === null) return await cancelBatch(setting, { api, display });
    const batchIs = (/** @type {string} */ id) => void (batchId = id);
    const deps = {
      api,
      display,
      stdin: () => addAbortSignal(signal, process.stdin),
      sleep,
      now: Date.now,
      signal,
      batchIs,
    };
    return await runBatch({ ...setting, input }, deps);
  } catch (error) {
    if (stoppedWith === null) throw error;
    display.error(stoppedText(batchId, setting.output));
    return stoppedWith;
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

/** @param {string} message */
function fail(message) {
  terminal.write(`${message}\n`);
  return 1;
}
