/** Bodies whose calls are relayed: the numbers in what goes to an upstream unchanged keep their digits. */
import { isExactNumber, mayLoseDigits, parseExact } from "../text/json/exact.ts";
import { isRecord } from "../text/json/record.ts";

/** Fields that are the upstream's to read. */
const RELAYED: ReadonlySet<string> = new Set(["params", "messages"]);

/** The value of a JSON text. Numbers are JavaScript's, but for those inside relayed fields that would lose digits. Throws on no JSON. */
export function parseRelayed(text: string): unknown {
  return mayLoseDigits(text) ? withNumbers(parseExact(text)) : JSON.parse(text);
}

/** The bodies' nesting is bounded before they are parsed. */
function withNumbers(value: unknown): unknown {
  if (isExactNumber(value)) return Number(JSON.stringify(value));
  if (Array.isArray(value)) return value.map(withNumbers);
  if (!isRecord(value)) return value;
  const entries = Object.entries(value).map(([name, item]) => [name, RELAYED.has(name) ? item : withNumbers(item)]);
  return Object.fromEntries(entries);
}
