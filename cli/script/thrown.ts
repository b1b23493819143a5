/** What standard error shows of an error that ended a script: where it is, and what to do. */
import { spawnSync } from "node:child_process";
import { resolve } from "node:path";

/** Node reads a file in milliseconds; longer than this is a machine that does not. */
const CHECK_MS_MAX = 10_000;

/**
 * The stack of an error. That of a file which is no JavaScript names only parts of Node, so Node checks the file once more and names
 * the line.
 */
export function shownError(error: unknown, file: string): string {
  if (!(error instanceof Error)) return String(error);
  const place = error instanceof SyntaxError ? faultIn(file) : null;
  const shown = place ?? error.stack ?? error.message;
  return error.message === "Illegal return statement"
    ? `${shown}\nA script returns its result from its default function: export default async function ({ agent }) { … }`
    : shown;
}

/** The line of a file that Node cannot read, and why; null if it can: then the fault is in what the file imports or parses. */
function faultIn(file: string) {
  const check = spawnSync(process.execPath, ["--check", resolve(file)], { encoding: "utf8", timeout: CHECK_MS_MAX });
  const lines = check.status === 0 ? [] : check.stderr.split("\n");
  const last = lines.findIndex((line) => line.startsWith("SyntaxError"));
  return last < 0 ? null : lines.slice(0, last + 1).join("\n");
}
