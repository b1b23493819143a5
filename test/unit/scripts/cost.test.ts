/** A million calls are priced by the price list, and the tests' counts are read from their output. */
import { expect, it } from "vitest";
import { besideCalls } from "../../../scripts/cost/beside.ts";
import { PRICE_LIST } from "../../../scripts/cost/price-list.ts";
import { priced, totalOf } from "../../../scripts/cost/price.ts";
import { countedIn } from "../../../scripts/cost/report.ts";
import { atDuration, isAtWidth } from "../../../scripts/cost/scale.ts";
import { costSetting } from "../../../scripts/cost/setting.ts";
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

it("prices what is billed beside calls: Workflows, R2, waking and deletion", () => {
  const lines = besideCalls();
  const priceOfLine = (words: string): number => lines.find(({ what }) => what.includes(words))?.usdPerMillion ?? NaN;
  expect(priceOfLine("Workflow")).toBeCloseTo(0.3, 9);
  expect([priceOfLine("written to R2"), priceOfLine("read from R2")]).toEqual([4.5, 0.36]);
  // 20,000 rows at a tenth of a cent per million, a million times.
  expect(priceOfLine("10,000 stored calls")).toBeCloseTo(20, 9);
  expect(priceOfLine("deletion")).toBeCloseTo(1.45, 9);
});

it("prices what a look at all runs costs, and what they report for it", () => {
  const priceOfLine = (words: string): number =>
    besideCalls().find(({ what }) => what.includes(words))?.usdPerMillion ?? NaN;
  expect(priceOfLine("report of a root run")).toBeCloseTo(1.15, 9);
  // 65 requests, and a row for each of 101 runs read by each.
  expect(priceOfLine("fanout top")).toBeCloseTo(65 * (0.15 + 0.101), 9);
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

it("scales what comes with time, and nothing else, from the 20 seconds that were counted", () => {
  // Held by one object for all of its 20 seconds, beside two requests of 13 ms.
  const held = { ...NOTHING, rows: 2, requests: 2, alarms: 1, messages: 1, awakeS: 20 + 4 * 0.013 };
  expect(atDuration(held, 20)).toEqual({ ...held, awakeS: expect.closeTo(held.awakeS, 9) as number });
  const long = atDuration(held, 60);
  expect(long).toMatchObject({ rows: 2, requests: 2, alarms: 3, messages: 3 });
  expect(long.awakeS).toBeCloseTo(60 + 8 * 0.013, 9);
  expect(atDuration(held, 2)).toMatchObject({
    alarms: 1,
    messages: 1,
    awakeS: expect.closeTo(2 + 4 * 0.013, 9) as number,
  });
});

it("takes the counts of the least counted width that is not narrower", () => {
  const widthsFor = (width: number): string[] =>
    Object.keys(BOUNDS).filter(
      (name) => /^\/batch, width \d+$/.test(name) && isAtWidth(name as keyof typeof BOUNDS, width),
    );
  expect(widthsFor(8)).toEqual(["/batch, width 8"]);
  expect(widthsFor(9)).toEqual(["/batch, width 64"]);
  expect(widthsFor(64)).toEqual(["/batch, width 64"]);
  expect(widthsFor(65)).toEqual(["/batch, width 512"]);
  expect(widthsFor(5_000)).toEqual(["/batch, width 512"]);
  expect(isAtWidth("/query", 1)).toBe(true);
});

it("reads its options, and names the one that is wrong", () => {
  expect(costSetting([])).toEqual({ isMeasured: false, calls: 1e6, seconds: 20, width: undefined });
  expect(costSetting(["--calls", "2e3", "--seconds", "0.5", "--width", "64", "--measure"])).toEqual({
    isMeasured: true,
    calls: 2_000,
    seconds: 0.5,
    width: 64,
  });
  for (const [option, value] of [
    ["calls", "0"],
    ["calls", "x"],
    ["seconds", "0"],
    ["seconds", "3601"],
    ["width", "1.5"],
    ["width", "0"],
  ])
    expect(costSetting([`--${option}`, `${value}`])).toMatch(new RegExp(`^--${option}: `));
  expect(costSetting(["--colour"])).toContain("--colour");
});
