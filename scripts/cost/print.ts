/**
 * Prints what a million calls of 20 seconds cost on Cloudflare, by way in, and where each dollar goes. The operations are
 * the bounds that test/objects/cost asserts; with `--measure`, the tests run and what they count is priced instead.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { BOUNDS, type WayIn } from "../../test/objects/cost/bounds.ts";
import { CALL_MS, EVENT_MS, type Bound, type Counted } from "../../test/objects/cost/counted.ts";
import { BEFORE } from "./before.ts";
import { PRICE_LIST } from "./price-list.ts";
import { priced, totalOf } from "./price.ts";
import { countedIn } from "./report.ts";

const isMeasured = process.argv.includes("--measure");
const measured: ReadonlyMap<string, Counted> = isMeasured ? measure() : new Map();

function measure(): Map<string, Counted> {
  const cwd = fileURLToPath(new URL("../..", import.meta.url));
  const args = ["vitest", "run", "--project", "objects", "test/objects/cost/table.test.ts"];
  const { stdout } = spawnSync("npx", args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
  return countedIn(stdout);
}

const what = isMeasured ? "counted operations" : "bounds of the counted operations, which the tests assert";
console.log(`USD per million calls of ${CALL_MS / 1_000} s, from the ${what}.`);
console.log(`Prices of ${PRICE_LIST.readOn} without what the plan includes: ${PRICE_LIST.sources.join(", ")}`);
console.log(`Assumed: an event keeps an object awake for ${EVENT_MS} ms; CPU time of Workers. "before": at 0f25735.\n`);
const lines = (Object.entries(BOUNDS) as [WayIn, Bound][]).map(([name, bound]) => {
  const call = { ...bound, ...measured.get(name) };
  const usd = priced(call);
  return {
    "way in": name,
    before: totalOf(priced({ ...bound, ...BEFORE[name] })).toFixed(2),
    "USD per M": totalOf(usd).toFixed(2),
    "= rows": usd.rows.toFixed(2),
    "awake objects": usd.objectSeconds.toFixed(2),
    "object requests": usd.objectRequests.toFixed(2),
    "Worker requests": usd.workerRequests.toFixed(2),
    "Worker CPU": usd.workerCpu.toFixed(2),
    storage: usd.storage.toFixed(2),
    "| rows": call.rows.toFixed(2),
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
