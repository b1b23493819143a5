/** Every way in costs at most what bounds.ts says, counted. `npm run cost` prices the same table. */
import { reset } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { directoriesOf } from "../../../src/objects/address.ts";
import { MANY_CALLS } from "../../support/busy-machine.ts";
import { meterObjects, requestsByMethod, resetMeter } from "../../support/objects-meter.ts";
import { openLatch, openRun, type TestRun } from "../../support/objects-run.ts";
import { BOUNDS, type WayIn } from "./bounds.ts";
import type { Counted } from "./counted.ts";
import { countAlone, countBatch, countSingle, knowPaces, TOOL_HOST, type Start } from "./measure.ts";
import * as ways from "./ways.ts";

meterObjects();
knowPaces();

const run = (width: number): Promise<TestRun> => openRun({ max_parallel: width });

const batch = (width: number, start: Start) => async (key: string) => {
  resetMeter();
  return countBatch(await run(width), key, width, start);
};

const single = (start: Start, host?: string) => async (key: string) => {
  resetMeter();
  const tools = [{ name: "t", url: `https://${TOOL_HOST}/hold/1/latch/${key}` }];
  const opened = await openRun({ max_parallel: 8, tools });
  // The first call of a run also makes tables. A tool call makes that of the log alone, and so does who reads it.
  const warm = host === undefined ? start : ways.query;
  await openLatch("0");
  await warm(opened, "0", 1);
  await opened.object.logPage(0, null);
  return countSingle(opened, key, start, host);
};

/** What a call costs whose answer its run has recorded. `isNamed`: whether it has an Idempotency-Key. */
const replayed = (isNamed: boolean) => async (key: string) => {
  resetMeter();
  const opened = await openRun({ max_parallel: 8, replay: "run" });
  const nameOf = (life: string): string | undefined => (!isNamed ? undefined : `${key}-${life}`);
  // The first of each kind makes tables.
  for (const life of ["first", "second"]) await ways.replayedQuery(opened, life, nameOf(life));
  return countAlone(async () => {
    expect(await ways.replayedQuery(opened, "third", nameOf("third"))).toContain('"replayed":true');
  });
};

const COUNT: Record<WayIn, (key: string) => Promise<Counted>> = {
  "/batch, width 8": batch(8, ways.batchJson),
  "/batch, width 64": batch(64, ways.batchJson),
  "/batch, width 512": batch(512, ways.batchJson),
  "/batch, width 64, no streams": batch(64, ways.batchUnstreamed),
  "/batch as lines, width 64": batch(64, ways.batchLines),
  "/batch, respond-async, width 64": batch(64, ways.asyncGroup),
  "/query": single(ways.query),
  "/query with an Idempotency-Key": single(ways.storedQuery),
  "/v1/chat/completions": single(ways.chat),
  "/v1/chat/completions, streamed": single(ways.streamedChat),
  "/v1/batches, width 64": batch(64, ways.batchApi),
  "/tool_call": single(ways.toolCall, TOOL_HOST),
  "/query, replayed": replayed(false),
  "/query with an Idempotency-Key, replayed": replayed(true),
  "POST /runs": async () => {
    // The parts of the list make their tables once, and not for each run.
    for (const part of directoriesOf(env)) await part().newest(null, 1);
    resetMeter();
    return countAlone(() => run(8));
  },
};

/** Counts without the runs of earlier counts: their alarms ring half a minute later, and what these do would be counted too. */
async function countAfterReset(name: WayIn, key: string): Promise<Counted> {
  await reset();
  return COUNT[name](key);
}

const OPERATIONS = ["rows", "requests", "commits", "alarms", "messages", "awakeS"] as const;
const COUNTS_MAX = 5;
/** What the machine may do else before another count, ms, for each that was before. */
const REST_MS = 1_000;

describe.each(Object.entries(BOUNDS))("a call by %s", (name, bound) => {
  it("costs at most the operations of its bound", { tags: ["slow"], ...MANY_CALLS }, async () => {
    const way = name as WayIn;
    const key = `cost-${Object.keys(BOUNDS).indexOf(name)}`;
    let counted = await countAfterReset(way, key);
    // On a busy machine headers come late, and executors start that a quiet one does not need: the least of a few counts, with more and
    // more time between them.
    for (let more = 1; more < COUNTS_MAX && OPERATIONS.some((each) => counted[each] > bound[each]); more++) {
      console.log(`more than its bound: ${JSON.stringify({ name, ...counted, asked: requestsByMethod() })}`);
      await new Promise((resolve) => setTimeout(resolve, more * REST_MS));
      counted = await countAfterReset(way, `${key}-${more}`);
    }
    console.log(`counted ${JSON.stringify({ name, ...counted })}`);
    for (const operation of OPERATIONS) {
      expect.soft(counted[operation], operation).toBeLessThanOrEqual(bound[operation]);
    }
    // A way in that counts nothing is not metered.
    expect(counted.rows).toBeGreaterThan(0);
  });
});
