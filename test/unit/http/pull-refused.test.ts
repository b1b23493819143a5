/** Completions that settle nothing: each is answered in a turn of its own. */
import { afterEach, expect, it, vi } from "vitest";
import { createApp } from "../../../src/http/app.ts";
import type { PullDone } from "../../../src/objects/methods/pull.ts";
import type { Refused } from "../../../src/objects/methods/types.ts";
import { NEEDLESS_COMPLETIONS_WAITING_MAX } from "../../../src/limits.ts";
import { pause } from "../../../src/text/bytes/slices.ts";

const ADMIN_KEY = "operator-key-0123456789-0123456789";
const COMPLETIONS = 32;
const REFUSED: Refused = { ok: false, reason: { reason: "lease_lost", leaseEnd: "expired" } };

/** The gateway with a run that says this of every completion. */
function gatewayOf(done: PullDone | Refused) {
  const run = { pull: () => Promise.resolve(done) };
  const RUN = { idFromString: (id: string) => id, idFromName: (id: string) => id, get: () => run };
  const env = { ADMIN_KEY, UPSTREAMS: { sim: { kind: "simulated" } }, RUN };
  const headers = { authorization: `Bearer ${ADMIN_KEY}`, "content-type": "application/json" };
  const body = JSON.stringify({ lease_id: "l", text: "t" });
  const app = createApp();
  return () => app.request("/runs/run_1/complete", { method: "POST", headers, body }, env);
}

/** Lets other events of the process pass until it holds. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve));
}

afterEach(() => void vi.useRealTimers());

it.each([
  ["refused", REFUSED, 409],
  ["repeated", { ok: true, kind: "complete", repeated: true } as const, 200],
])("answers completions that are %s in turns, none before a timer has come", async (_, done, status) => {
  vi.useFakeTimers({ toFake: ["setTimeout", "Date"] });
  const complete = gatewayOf(done);
  const statuses: number[] = [];
  const all = Promise.all(
    Array.from({ length: COMPLETIONS }, async () => void statuses.push((await complete()).status)),
  );
  // Each waits on a timer of its own.
  await until(() => vi.getTimerCount() >= COMPLETIONS || statuses.length > 0);
  expect(statuses).toEqual([]);
  while (statuses.length < COMPLETIONS) {
    const before = statuses.length;
    await vi.advanceTimersToNextTimerAsync();
    expect(statuses.length - before).toBeLessThanOrEqual(1);
  }
  await all;
  expect(statuses).toEqual(Array(COMPLETIONS).fill(status));
});

it("answers completions that settle their items, though no timer comes", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "Date"] });
  const complete = gatewayOf({ ok: true, kind: "complete", repeated: false });
  const answers = await Promise.all(Array.from({ length: COMPLETIONS }, complete));
  expect(answers.map(({ status }) => status)).toEqual(Array(COMPLETIONS).fill(200));
});

it("lets a slice of a large request begin, however many refused completions wait", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "Date"] });
  const complete = gatewayOf(REFUSED);
  let answered = 0;
  const all = Promise.all(Array.from({ length: COMPLETIONS }, async () => void (await complete(), (answered += 1))));
  await until(() => vi.getTimerCount() >= COMPLETIONS);
  let hasBegun = false;
  const slice = pause().then(() => (hasBegun = true));
  await vi.advanceTimersToNextTimerAsync();
  await vi.advanceTimersToNextTimerAsync();
  expect([hasBegun, answered < COMPLETIONS / 2]).toEqual([true, true]);
  await vi.runAllTimersAsync();
  await Promise.all([all, slice]);
});

it("refuses completions beyond its bound with a wait, at once, and answers again when the others have had their turns", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "Date"] });
  const complete = gatewayOf(REFUSED);
  const settling = gatewayOf({ ok: true, kind: "complete", repeated: false });
  const waiting = Array.from({ length: NEEDLESS_COMPLETIONS_WAITING_MAX }, complete);
  await until(() => vi.getTimerCount() >= NEEDLESS_COMPLETIONS_WAITING_MAX);
  const beyond = await complete();
  expect([beyond.status, beyond.headers.get("retry-after")]).toEqual([503, expect.stringMatching(/^[1-9]\d*$/)]);
  expect((await settling()).status).toBe(200);
  await vi.runAllTimersAsync();
  const answers = await Promise.all(waiting);
  expect(answers.map(({ status }) => status)).toEqual(Array(NEEDLESS_COMPLETIONS_WAITING_MAX).fill(409));
  const later = complete();
  await until(() => vi.getTimerCount() > 0);
  await vi.runAllTimersAsync();
  expect((await later).status).toBe(409);
});
