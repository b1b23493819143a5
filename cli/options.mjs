/** The options of a command, from its arguments. */
import { parseArgs } from "node:util";
import { Failure } from "./failure.mjs";

/**
 * @template {import("node:util").ParseArgsConfig["options"] & {}} T
 * @param {string} command
 * @param {readonly string[]} args
 * @param {T} options
 */
export function parsed(command, args, options) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    throw wrong(command, error instanceof Error ? error.message : String(error));
  }
}

/** @param {string} command @param {string} sentence */
export function wrong(command, sentence) {
  return new Failure(`${sentence}\nFor help, run: fanout ${command} --help`);
}

/**
 * @param {string} command
 * @param {string} name
 * @param {string | undefined} text
 * @returns {number | null}
 */
export function amountOf(command, name, text) {
  if (text === undefined) return null;
  if (!/^\d{1,9}(\.\d{1,9})?$/.test(text)) throw wrong(command, `--${name} must be a number, such as 2.00.`);
  return Number(text);
}
