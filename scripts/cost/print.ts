/**
 * `npm run cost [-- --calls 1e6 --seconds 20 --width 64] [--measure]`: prints what calls cost on Cloudflare, by way in, and where
 * each dollar goes. The operations are the bounds that test/objects/cost asserts; with `--measure`, the tests run and what
 * they count is priced instead.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { BOUNDS, type WayIn } from "../../test/objects/cost/bounds.ts";
import { CALL_MS, EVENT_MS, type Bound, type Counted } from "../../test/objects/cost/counted.ts";
import { BEFORE } from "./before.ts";
import { besideCalls } from "./beside.ts";
import { PRICE_LIST } from "./price-list.ts";
import { priced, totalOf } from "./price.ts";
import { countedIn } from "./report.ts";
import { atDuration, isAtWidth } from "./scale.ts";
import { costSetting } from "./setting.ts";

const setting = costSetting(process.argv.slice(2));
if (typeof setting === "string") {
  console.error(setting);
  process.exit(2);
}
const { isMeasured, calls, seconds, width } = setting;
const measured: ReadonlyMap<string, Counted> = isMeasured ? measure() : new Map();

function measure(): Map<string, Counted> {
  const cwd = fileURLToPath(new URL("../..", import.meta.url));
  const args = ["vitest", "run", "--project", "objects", "test/objects/cost/table.test.ts"];
  const { stdout } = spawnSync("npx", args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
  return countedIn(stdout);
}

const what = isMeasured ? "counted operations" : "bounds of the counted operations, which the tests assert";
const at = width === undefined ? "" : ` at width ${width}`;
console.log(`USD for ${calls.toLocaleString("en")} calls of ${seconds} s${at}, from the ${what}.`);
console.log(`Prices of ${PRICE_LIST.readOn} without what the plan includes: ${PRICE_LIST.sources.join(", ")}`);
console.log(`Assumed: an event keeps an object awake for ${EVENT_MS} ms; CPU time of Workers. "before": at 0f25735.`);
if (seconds * 1_000 !== CALL_MS) {
  console.log(
    `Counted at ${CALL_MS / 1_000} s: objects that a call holds awake, alarms and messages are scaled with the time.`,
  );
}
console.log("");
const millions = calls / 1e6;
const shown = (usdPerMillion: number): string => (usdPerMillion * millions).toFixed(2);
const beforeOf = (name: WayIn, bound: Bound): string => {
  const before = BEFORE[name];
  return before === undefined ? "" : shown(totalOf(priced(atDuration({ ...bound, ...before }, seconds))));
};
const ways = (Object.entries(BOUNDS) as [WayIn, Bound][]).filter(
  ([name]) => width === undefined || isAtWidth(name, width),
);
const lines = ways.map(([name, bound]) => {
  const call = atDuration({ ...bound, ...measured.get(name) }, seconds);
  const usd = priced(call);
  return {
    "way in": name,
    before: beforeOf(name, bound),
    USD: shown(totalOf(usd)),
    "= rows": shown(usd.rows),
    "awake objects": shown(usd.objectSeconds),
    "object requests": shown(usd.objectRequests),
    "Worker requests": shown(usd.workerRequests),
    "Worker CPU": shown(usd.workerCpu),
    storage: shown(usd.storage),
    "| per call: rows": call.rows.toFixed(2),
    RPCs: call.requests.toFixed(2),
    commits: call.commits.toFixed(2),
    alarms: call.alarms.toFixed(2),
    messages: call.messages.toFixed(2),
    "awake s": call.awakeS.toFixed(2),
  };
});
const columns = Object.keys(lines[0] ?? {}) as (keyof (typeof lines)[number])[];
const widths = columns.map((column) => Math.max(column.length, ...lines.map((line) => line[column].length)));
const row = (cells: readonly string[]): string =>
  cells.map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0))).join("  ");
console.log(row(columns));
for (const line of lines) console.log(row(columns.map((column) => line[column])));
console.log("\nBeside calls, USD per million:");
for (const { what, usdPerMillion, basis } of besideCalls())
  console.log(`${usdPerMillion.toFixed(2)}  ${what}: ${basis}`);
