/** The options of a command, from its arguments. */
import { parseArgs, type ParseArgsConfig } from "node:util";
import { Failure } from "./failure.ts";

export function parsed<T extends ParseArgsConfig["options"] & {}>(
  command: string,
  args: readonly string[],
  options: T,
) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    throw wrong(command, error instanceof Error ? error.message : String(error));
  }
}

export function wrong(command: string, sentence: string): Failure {
  return new Failure(`${sentence}\nFor help, run: fanout ${command} --help`);
}

export function amountOf(command: string, name: string, text: string | undefined): number | null {
  if (text === undefined) return null;
  if (!/^\d{1,9}(\.\d{1,9})?$/.test(text)) throw wrong(command, `--${name} must be a number, such as 2.00.`);
  return Number(text);
}
