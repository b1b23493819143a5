/** A million calls are priced by the price list, and the tests' counts are read from their output. */
import { expect, it } from "vitest";
import { PRICE_LIST } from "../../../scripts/cost/price-list.ts";
import { priced, totalOf } from "../../../scripts/cost/price.ts";
import { countedIn } from "../../../scripts/cost/report.ts";
import { BOUNDS } from "../../objects/cost/bounds.ts";

const FREE = { rows: 0, requests: 0, commits: 0, alarms: 0, messages: 0, awakeS: 0 };
const NOTHING = { ...FREE, callsPerRequest: Infinity, workerCpuMs: 0, storedBytes: 0 };
const priceOf = (call: Partial<typeof NOTHING>): number => totalOf(priced({ ...NOTHING, ...call }));

it("prices each operation of a call as a million of them", () => {
  expect(priceOf({})).toBe(0);
  expect(priceOf({ rows: 2 })).toBe(2);
  expect(priceOf({ requests: 2 })).toBeCloseTo(0.3, 9);
  expect(priceOf({ alarms: 1 })).toBeCloseTo(0.15, 9);
  expect(priceOf({ messages: 20 })).toBeCloseTo(0.15, 9);
  // Six calls in an object that is awake for the 20 seconds of each.
  expect(priceOf({ awakeS: 20 / 6 })).toBeCloseTo(5.33, 2);
  expect(priceOf({ callsPerRequest: 1 })).toBeCloseTo(0.3, 9);
  expect(priceOf({ callsPerRequest: 1_000 })).toBeCloseTo(0.000_3, 9);
  expect(priceOf({ workerCpuMs: 5 })).toBeCloseTo(0.1, 9);
  // 3 GB for a day.
  expect(priceOf({ storedBytes: 3_000 })).toBeCloseTo(0.02, 9);
  // Commits cost time, which is in the seconds.
  expect(priceOf({ commits: 5 })).toBe(0);
});

it("has a price list with its date and sources", () => {
  expect(PRICE_LIST.readOn).toMatch(/^\d{4}-\d\d-\d\d$/);
  for (const source of PRICE_LIST.sources) expect(URL.canParse(source)).toBe(true);
});

it("reads the counts of every way in from the tests' output", () => {
  const counts = { ...FREE, rows: 1.5 };
  const lines = Object.keys(BOUNDS).map((name) => `stdout | x\ncounted ${JSON.stringify({ name, ...counts })}\n`);
  const read = countedIn(lines.join("\n"));
  expect([...read.keys()]).toEqual(Object.keys(BOUNDS));
  expect(read.get("/query")).toEqual(counts);
  expect(countedIn("nothing").size).toBe(0);
});
