/** `fanout cassette diff A B`: what only one of two tapes has. Exit status 1 = they differ, 2 = a file is no tape. */
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compareTapes, type Lonely } from "../../src/recordings/compare.ts";
import type { Exchange } from "../../src/recordings/types.ts";
import type { Surroundings } from "../command.ts";
import { Failure } from "../failure.ts";
import { GATEWAY_OPTIONS, gatewayOf } from "../gateway/requests.ts";
import { parsed, wrong } from "../options.ts";
import { printable } from "../text/printable.ts";
import { saveTape } from "./tapes.ts";

export async function diff(args: string[], { env, read, stdout, signal }: Surroundings): Promise<number> {
  const { values, positionals } = parsed("cassette", args, {
    json: { type: "boolean", default: false },
    ...GATEWAY_OPTIONS,
  });
  const [nameA, nameB] = positionals;
  if (nameA === undefined || nameB === undefined || positionals.length > 2)
    throw wrong("cassette", "Expected two tapes, each a file or a name.");
  const folder = await mkdtemp(join(tmpdir(), "fanout-diff-"));
  /** The tape of a file, or of the gateway if there is no such file. */
  const tapeOf = async (name: string, copy: string): Promise<Exchange[]> => {
    if (existsSync(name)) return readTape(name, name);
    const file = join(folder, copy);
    await saveTape(gatewayOf(values, { env, read }, { operator: true }), name, file, signal);
    return readTape(file, name);
  };
  try {
    const found = compareTapes(await tapeOf(nameA, "0.jsonl"), await tapeOf(nameB, "1.jsonl"));
    const { onlyFirst, onlySecond, answers } = found;
    const [shownA, shownB] = [printable(nameA), printable(nameB)];
    const lines = [
      ...onlyFirst.flatMap((lonely) => onlyLines(shownA, lonely, shownB)),
      ...onlySecond.flatMap((lonely) => onlyLines(shownB, lonely, shownA)),
      ...answers.map(([a, b]) => `other answer: ${a} of ${shownA}, ${b} of ${shownB}`),
    ];
    stdout(values.json ? `${JSON.stringify(found)}\n` : lines.map((line) => `${line}\n`).join(""));
    return lines.length === 0 ? 0 : 1;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function readTape(file: string, name: string): Exchange[] {
  return readFileSync(file, "utf8")
    .split("\n")
    .flatMap((line, index) => {
      if (line.trim() === "") return [];
      const exchange = exchangeOf(line);
      if (exchange !== null) return [exchange];
      throw new Failure(`${printable(name)} is not a tape: line ${index + 1} is not an exchange.`, 2);
    });
}

function exchangeOf(line: string): Exchange | null {
  try {
    const value: Exchange = JSON.parse(line);
    const isWhole =
      Array.isArray(value.answer.chunks) && ("request" in value ? "body" in value.request : "key" in value.cut);
    return isWhole ? value : null;
  } catch {
    return null;
  }
}

function onlyLines(name: string, { number, said, near }: Lonely, other: string): string[] {
  const only = `only ${name} has ${number}: ${JSON.stringify(printable(said))}`;
  if (near === null) return [only];
  const differences = near.differences.map((difference) => `    ${printable(difference)}`);
  return [only, `  nearest in ${other}: ${near.number}`, ...differences];
}
