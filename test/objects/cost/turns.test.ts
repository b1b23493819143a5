import { describe, expect, it } from "vitest";
import { LEASE_TTL_MS, LOG_TAIL_EVENTS_MAX } from "../../../src/limits.ts";
import { MANY_CALLS } from "../../support/busy-machine.ts";
import { crash, storedLeases } from "../../support/objects-direct.ts";
import { withRenewals } from "../../support/objects-clock.ts";
import { logOf, ofType } from "../../support/objects-log.ts";
import { openLatch, openRun, prompts, untilInFlight, type TestRun } from "../../support/objects-run.ts";
import { watched, watchObjects } from "../../support/objects-watch.ts";

watchObjects();

/** Rows that the alarm writes: it is set once for a burst, however many calls that has. */
const ALARM_ROWS = 1;
/** Rows of a batch's header and result, and of the first claims of its lanes. */
const OPENING_ROWS = 16;
const CALLS_PER_PAGE = 32;
/** Start and end of its attempt, and its own end. */
const EVENTS_PER_CALL = 3;
/** RPCs that a route makes around a batch, however many slots it has: settings, opening, end, results. */
const ROUTE_RPCS = ["answerSettings", "stagePages", "openGroup", "waitGroup", "results", "endedSlots"];
/** With the one socket at which it waits. */
const ROUTE_CALLS = [...ROUTE_RPCS, "fetch", "webSocketClose"];

/** Calls of a batch to its run's object beside those that settle and claim. */
const OTHER_CALLS_MAX = 7;
/** One settlement that is also a claim for each answer, and those of lanes that start, wait and end. */
const CLAIMS_PER_CALL_MAX = 1.3;
/** A busy machine starts lanes late, and late lanes write more rows: such a batch is counted again. */
const COUNTS_MAX = 6;

/** What a batch costs whose answers arrive one by one. `fired`: how many leases it has outlasted. */
async function countBatch(count: number, width: number) {
  const run = await openRun({ max_parallel: width });
  const before = await costsOf(run);
  const startedMs = performance.now();
  const answer = await quietly(() => run.batch({ prompts: prompts(count), model: "up/delay/2/jitter/60" }));
  expect(answer.status).toBe("completed");
  const costs = since(before, await costsOf(run));
  const fired = Math.floor((performance.now() - startedMs) / LEASE_TTL_MS);
  const { settleAndClaim: claims = 0, alarm: rung = 0, ...others } = ownCalls(run);
  const otherCalls = Object.values(others).reduce((sum, calls) => sum + calls, 0);
  return { ...costs, fired, claims, rung, otherCalls, methods: Object.keys(others) };
}

describe("a call of a batch", () => {
  it.each([
    { count: 96, width: 8 },
    { count: 96, width: 64 },
    { count: 1_000, width: 64 },
  ])(
    "writes at most 2.1 rows and those of its pages, and makes 1.3 object calls, if $count answers arrive separately at width $width",
    { tags: ["slow"], ...MANY_CALLS },
    async ({ count, width }) => {
      const pages = Math.ceil(count / CALLS_PER_PAGE);
      const rowsMax = 2.1 * count + pages + OPENING_ROWS;
      // On a busy machine headers come late, and lanes start that a quiet one does not need, by alarms: the least of a few counts.
      const isMore = ({ rows, otherCalls, alarms, fired, claims }: Awaited<ReturnType<typeof countBatch>>): boolean =>
        rows > rowsMax ||
        otherCalls > OTHER_CALLS_MAX ||
        alarms > ALARM_ROWS + fired ||
        claims > CLAIMS_PER_CALL_MAX * count;
      let counted = await countBatch(count, width);
      for (let more = 1; more < COUNTS_MAX && isMore(counted); more++) counted = await countBatch(count, width);
      const { rows, logRows, alarms, fired, claims, rung, otherCalls, methods } = counted;
      expect(rows).toBeLessThanOrEqual(rowsMax);
      // Each answer is a row of its own, so less would be a loss.
      expect(rows).toBeGreaterThan(count);
      // Set anew when it has fired, which it does on a machine so busy that the batch outlasts a lease.
      expect(alarms).toBeLessThanOrEqual(ALARM_ROWS + fired);

      expect(claims / count).toBeLessThanOrEqual(CLAIMS_PER_CALL_MAX);
      expect(rung).toBeLessThanOrEqual(fired);
      expect(methods.filter((method) => !ROUTE_CALLS.includes(method))).toEqual([]);
      expect(otherCalls).toBeLessThanOrEqual(OTHER_CALLS_MAX);

      expect(logRows).toBeGreaterThan(0);
      expect(logRows).toBeLessThanOrEqual(logRowsMax(count));
    },
  );
});

describe("a query", () => {
  it("writes at most two rows and calls the run object once before its answer, for 50 in a row", async () => {
    const run = await openRun();
    // The first call after the run's opening also finds out when the alarm must ring.
    const before = await costsOf(run);
    await quietly(async () => {
      for (const prompt of prompts(50)) await run.query({ prompt });
    });
    const { rows, logRows } = since(before, await costsOf(run));
    expect(rows - ALARM_ROWS).toBeLessThanOrEqual(2 * 50);
    // Once there is credit, calls start without the run object. Before, settlements leave after the answer.
    const { acquireMany = 0, settleMany = 0, openCredit = 0, reportCredit = 0, ...others } = ownCalls(run);
    expect(others).toEqual({});
    // On a fast machine all 50 are in the run object's window, which each keeps open: the credit that it has lent starts none.
    expect(acquireMany + reportCredit).toBeLessThanOrEqual(50);
    expect(openCredit).toBeLessThanOrEqual(1);
    expect(settleMany).toBeLessThanOrEqual(50);
    expect(logRows).toBeLessThanOrEqual(logRowsMax(50));
    expect(ofType(await logOf(run), "slot_completed")).toHaveLength(50);
  });

  it(
    "adds no row to the log until there are many events, however long it takes, and a reader gets all of them",
    { tags: ["slow"] },
    async () => {
      const run = await openRun({ window_ms: 0 });
      const before = await costsOf(run);
      const calls = Math.floor(LOG_TAIL_EVENTS_MAX / EVENTS_PER_CALL) - 1;
      for (const [at, prompt] of prompts(calls).entries()) await run.query({ prompt, model: `up/delay/${at}` });
      await expect.poll(() => storedLeases(run)).toBe(0);
      expect(since(before, await costsOf(run)).logRows).toBe(0);
      // They are stored all the same, and a reader makes them rows.
      await crash(run.object);
      expect(ofType(await logOf(run), "slot_completed")).toHaveLength(calls);
    },
  );

  it("writes at most two rows and shares calls to the run object, for 50 at once", async () => {
    const run = await openRun({ max_parallel: 50 });
    const before = await costsOf(run);
    await quietly(() => Promise.all(prompts(50).map((prompt) => run.query({ prompt, model: "up/jitter/40" }))));
    const { rows, logRows } = since(before, await costsOf(run));
    expect(rows - ALARM_ROWS).toBeLessThanOrEqual(2 * 50);
    const { acquire = 0, acquireMany = 0, settleMany = 0, openCredit = 0, reportCredit = 0, ...others } = ownCalls(run);
    expect(others).toEqual({});
    expect(openCredit + reportCredit).toBeLessThanOrEqual(10);
    // The first asks by itself; what arrives meanwhile asks together, and what has waited for long, as on a busy machine, asks
    // once more. A settlement has a call of its own at most.
    expect(acquireMany + acquire).toBeLessThanOrEqual(25);
    expect(settleMany).toBeLessThanOrEqual(50);
    expect(logRows).toBeLessThanOrEqual(logRowsMax(50));
    expect(ofType(await logOf(run), "slot_completed")).toHaveLength(50);
  });

  it("needs no alarm of its own: a burst of 50 after another sets none", async () => {
    const run = await openRun({ max_parallel: 50 });
    await run.query({ prompt: "first" });
    const alarms: number[] = [];
    // A machine so busy that a burst outlasts a timer of the run sets one for what is late, but not in every burst.
    for (let burst = 0; burst < 4 && alarms.at(-1) !== 0; burst++) {
      const before = await costsOf(run);
      await Promise.all(prompts(50).map((prompt) => run.query({ prompt })));
      alarms.push(since(before, await costsOf(run)).alarms);
    }
    expect(alarms).toContain(0);
  });
});

describe("a query that is replayed", () => {
  it.each([
    { name: "and has an Idempotency-Key", isNamed: true, rowsMax: 2 },
    { name: "and has none", isNamed: false, rowsMax: 2 },
  ])("$name gets its answer with the one request that takes it in, for 50 at once", async ({ isNamed, rowsMax }) => {
    const run = await openRun({ replay: "run", max_parallel: 50 });
    const life = (epoch: string): Promise<string[]> =>
      Promise.all(
        prompts(50).map(async (prompt, at) => {
          const named = isNamed ? { "idempotency-key": `${epoch}-${at}` } : {};
          const headers = { "x-fanout-epoch": epoch, ...named };
          const answer = await run.post("/query", { prompt, model: "sim/echo" }, { headers });
          return await answer.text();
        }),
      );
    await life("first");
    // With calls of several Workers in flight, what arrives together shares turns: more groups end in one than are kept.
    const key = `replayed-${isNamed}`;
    const held = prompts(2).map((prompt) => run.query({ prompt, model: `up/key/${key}/latch/${key}` }));
    await untilInFlight(key, 2);
    const before = await costsOf(run);
    const callsBefore = ownCalls(run);
    const answers = await quietly(() => life("second"));
    for (const answer of answers) expect(answer).toContain('"replayed":true');
    const { rows } = since(before, await costsOf(run));
    expect(rows - ALARM_ROWS).toBeLessThanOrEqual(rowsMax * 50);
    const calls = Object.entries(ownCalls(run)).map(([method, count]) => [method, count - (callsBefore[method] ?? 0)]);
    await openLatch(key);
    await Promise.all(held);
    // Those without a key ask together, with what the first left over. Calls in flight may open their sockets meanwhile.
    const {
      openGroup,
      acquireMany,
      settleMany: _,
      fetch: __,
      ...others
    } = Object.fromEntries(calls.filter(([, count]) => count !== 0));
    expect(others).toEqual({});
    if (isNamed) expect([openGroup, acquireMany]).toEqual([50, undefined]);
    else expect(acquireMany).toBeLessThanOrEqual(25);
  });
});

/** Rows of the log for so many calls: each call has three events, and the run and its groups a few more. */
function logRowsMax(calls: number): number {
  return Math.ceil((calls * EVENTS_PER_CALL + 4) / LOG_TAIL_EVENTS_MAX) + 1;
}

/** What a run has cost so far: all rows, those of its log among them, and alarms set. */
type Costs = { rows: number; logRows: number; alarms: number };

async function costsOf(run: TestRun): Promise<Costs> {
  const { all, log } = await run.object.rowsWritten();
  return { rows: all, logRows: log, alarms: watched(run.id).alarmsSet };
}

/** Runs `work` without renewals of leases: how many come depends on the machine, and each is a call. */
function quietly<T>(work: () => Promise<T>): Promise<T> {
  return withRenewals(null, work);
}

function since(before: Costs, now: Costs): Costs {
  return {
    rows: now.rows - before.rows,
    logRows: now.logRows - before.logRows,
    alarms: now.alarms - before.alarms,
  };
}

/** What the run's object was asked for by calls: not its opening, nor what this test asked itself. */
function ownCalls(run: TestRun): Record<string, number> {
  const { open: _, rowsWritten: __, ...calls } = watched(run.id).calls;
  return calls;
}
