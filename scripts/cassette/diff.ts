/** Compares two tapes' files: `diff.ts A.jsonl B.jsonl NAME_A NAME_B [--json]`. Exit status 1 = they differ. */
import { readFileSync } from "node:fs";
import { compareTapes, type Lonely } from "../../src/recordings/compare.ts";
import type { Exchange } from "../../src/recordings/types.ts";
import { printable } from "../watch/text.ts";

const [fileA = "", fileB = "", nameA = fileA, nameB = fileB, json] = process.argv.slice(2);
const found = compareTapes(tape(fileA, nameA), tape(fileB, nameB));
const { onlyFirst, onlySecond, answers } = found;
if (json === "--json") console.log(JSON.stringify(found));
else {
  only(nameA, onlyFirst, nameB);
  only(nameB, onlySecond, nameA);
  for (const [a, b] of answers) console.log(`other answer: ${a} of ${printable(nameA)}, ${b} of ${printable(nameB)}`);
}
process.exitCode = onlyFirst.length + onlySecond.length + answers.length === 0 ? 0 : 1;

function tape(file: string, name: string): Exchange[] {
  const exchanges: Exchange[] = [];
  for (const [index, line] of readFileSync(file, "utf8").split("\n").entries()) {
    if (line.trim() === "") continue;
    const exchange = exchangeOf(line);
    if (exchange === null) {
      console.error(`${printable(name)} is not a tape: line ${index + 1} is not an exchange.`);
      process.exit(2);
    }
    exchanges.push(exchange);
  }
  return exchanges;
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

function only(name: string, lines: readonly Lonely[], other: string): void {
  for (const { number, said, near } of lines) {
    console.log(`only ${printable(name)} has ${number}: ${JSON.stringify(printable(said))}`);
    if (near === null) continue;
    console.log(`  nearest in ${printable(other)}: ${near.number}`);
    for (const difference of near.differences) console.log(`    ${printable(difference)}`);
  }
}
