/** A run whose calls wait for a gate sleeps until the gate has permits, and an instance that wakes up exchanges with it before it starts a call. */
import { runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeEach, expect, it } from "vitest";
import type { GateObject } from "../../src/index.ts";
import { GATE_SLEEP_MS_MAX, TIMER_MS_MAX } from "../../src/limits.ts";
import { gateReport } from "../support/gate-report.ts";
import { skipTime } from "../support/objects-clock.ts";
import { evict } from "../support/objects-direct.ts";
import { alarmOf, lookAt, openAsync } from "../support/objects-group.ts";
import { awake, meterObjects, operations, requestsOf, resetMeter } from "../support/objects-meter.ts";
import { openRun, prompts, upstreamStats, type TestRun } from "../support/objects-run.ts";
import { quiet } from "./cost/quiet.ts";

meterObjects();

const CALLS = 3;

/** The gate of the upstream's only key. */
const gate = (): DurableObjectStub<GateObject> => env.GATES.getByName("up");

/** The key has six requests a minute, of which none is left: another run's answer has shown it. */
beforeEach(async () => {
  const requests = { limit: 6, remaining: 0, resetMs: 60_000, windowMs: 60_000 };
  await gate().exchange(gateReport("another", 1, { samples: [{ ageMs: 0, requests }] }));
});

/** Opens a batch whose calls all wait for the gate: their run has had a call before, so that it knows the limit. */
async function waitingBatch(key: string): Promise<{ run: TestRun; id: string }> {
  resetMeter();
  const run = await openRun();
  const model = `up/key/${key}`;
  await run.query({ prompt: "first", model });
  await expect.poll(async () => (await gate().status()).runs).toBe(2);
  // The call is settled after its answer, and then its run reports the template that it has seen.
  await requested("settleMany", "learn");
  await quiet();
  const id = await openAsync(run, { prompts: prompts(CALLS), model });
  await expect.poll(async () => (await gate().status()).waiting).toBe(CALLS);
  // A lane is started, and finds nothing to do.
  await requested("start", "settleAndClaim");
  return { run, id };
}

/** Waits for requests that are sent beside the others: while they are under way, nothing shows that they will come. */
async function requested(...methods: string[]): Promise<void> {
  for (const method of methods) await expect.poll(() => requestsOf(method), { message: method }).toBeGreaterThan(0);
}

/** Lets time pass from alarm to alarm until the batch has ended. A call starts every ten seconds. */
async function sleepToTheEnd({ run, id }: { run: TestRun; id: string }): Promise<void> {
  const alarmsMax = 2 * (10_000 / GATE_SLEEP_MS_MAX) * (1 + CALLS);
  for (let alarms = 0; alarms < alarmsMax; alarms++) {
    skipTime(GATE_SLEEP_MS_MAX);
    await runDurableObjectAlarm(run.object);
    await quiet();
    if ((await lookAt(run, id)).status === "completed") return;
  }
  throw new Error(`the batch did not end within ${alarmsMax} alarms`);
}

it("calls that wait for a rate hold no object, and start when the alarm rings", { tags: ["slow"] }, async () => {
  const { run, id } = await waitingBatch("sleeps");
  const before = await quiet();
  expect(awake().objects).toEqual([]);
  const alarmInMs = ((await alarmOf(run)) ?? Infinity) - Date.now();
  expect(alarmInMs).toBeGreaterThan(0);
  expect(alarmInMs).toBeLessThanOrEqual(GATE_SLEEP_MS_MAX);
  await new Promise((resolve) => setTimeout(resolve, TIMER_MS_MAX / 4));
  expect({ ...operations(), timerMs: 0 }).toEqual({ ...before, timerMs: 0 });
  await sleepToTheEnd({ run, id });
  expect((await upstreamStats("sleeps")).requests).toBe(1 + CALLS);
});

it("an instance that wakes up from it starts nothing before its gate has replied", { tags: ["slow"] }, async () => {
  const { run, id } = await waitingBatch("restarts");
  await quiet();
  await evict(run.object);
  // The alarm rings early, as it does after a restart: nothing is due yet.
  await runDurableObjectAlarm(run.object);
  await quiet();
  expect((await upstreamStats("restarts")).requests).toBe(1);
  expect((await gate().status()).waiting).toBe(CALLS);
  await sleepToTheEnd({ run, id });
  expect((await upstreamStats("restarts")).requests).toBe(1 + CALLS);
});
