/** Groups that outlive their clients: opened and left, named by a key, looked at, and at rest. */
import { runInDurableObject } from "cloudflare:test";
import { expect } from "vitest";
import { z } from "zod";
import { MIGRATIONS } from "../../durable-objects/run/store/tables.ts";
import type { RunObject } from "../../src/index.ts";
import { expectLoggedOnce, logOf } from "./objects-log.ts";
import { batchAnswerOf, upstreamStats, type BatchAnswer, type TestRun } from "./objects-run.ts";

const accepted = z.looseObject({ id: z.string(), status: z.string() });
/** A group as `GET /groups/:id` and `DELETE` show it. */
export type GroupShown = z.infer<typeof accepted>;

/** Opens a batch without waiting for it. The group's id. */
export async function openAsync(run: TestRun, body: unknown, key?: string): Promise<string> {
  const named: Record<string, string> = key === undefined ? {} : { "idempotency-key": key };
  const response = await run.post("/batch", body, { headers: { prefer: "respond-async", ...named } });
  expect(response.status).toBe(202);
  return accepted.parse(await response.json()).id;
}

/** Opens a batch that lanes execute, for no client waits for it, and follows it to its end. */
export async function batchOnLanes(run: TestRun, body: unknown): Promise<BatchAnswer> {
  const id = await openAsync(run, body);
  for (;;) {
    const response = await run.send("GET", `/groups/${id}?wait_ms=20000`);
    if (response.status !== 200) throw new Error(`group ${id} cannot be read: ${await response.text()}`);
    const json: unknown = await response.json();
    if (accepted.parse(json).status !== "running") return batchAnswerOf(json);
  }
}

const line = z.looseObject({ type: z.string(), id: z.string().nullable(), index: z.int().optional() });

/** Sends a batch that is answered with a line per slot, and reads its group once it has ended. */
async function batchAsLines(run: TestRun, body: unknown): Promise<BatchAnswer> {
  const response = await run.post("/batch", body, { accept: "application/x-ndjson" });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`the batch was refused: ${text}`);
  const lines = text.split("\n").filter((each) => each.trim() !== "");
  const events = lines.map((each) => line.parse(JSON.parse(each)));
  const id = events[0]?.id ?? "";
  const answer = batchAnswerOf(await (await run.send("GET", `/groups/${id}`)).json());
  // Each slot has one line, with what the whole answer has for it.
  const slots = events.slice(1, -1).toSorted((a, b) => (a.index ?? -1) - (b.index ?? -1));
  expect(slots.map(({ type, index }) => [type, index])).toEqual(answer.results.map((_, index) => ["slot", index]));
  expect(slots.map(({ result, error }) => ({ result, error }))).toEqual(
    answer.results.map((result, index) => ({ result, error: answer.errors[index] })),
  );
  expect(events.at(-1)).toMatchObject({ type: "group_completed", status: answer.status });
  return answer;
}

/**
 * The ways in which a batch is executed: by its client's Worker, which lanes join where it needs them, answered whole or as
 * its slots end; and by lanes alone.
 */
export const EXECUTORS = [
  { executor: "its client's Worker", key: "worker", sendBatch: (run: TestRun, body: unknown) => run.batch(body) },
  { executor: "its client's Worker that streams lines", key: "lines", sendBatch: batchAsLines },
  { executor: "lanes", key: "lanes", sendBatch: batchOnLanes },
] as const;

/** Sends a request under an Idempotency-Key. Its status, whether the answer is a recorded one, and its JSON. */
export async function keyed(
  run: TestRun,
  key: string,
  path: string,
  body: unknown,
): Promise<{ status: number; replayed: boolean; json: unknown }> {
  const response = await run.post(path, body, { headers: { "idempotency-key": key } });
  const replayed = response.headers.get("idempotent-replayed") === "true";
  return { status: response.status, replayed, json: await response.json() };
}

/** The current document of a group. */
export async function lookAt(run: TestRun, id: string, waitMs = 0): Promise<GroupShown> {
  const response = await run.send("GET", `/groups/${id}?wait_ms=${waitMs}`);
  expect(response.status).toBe(200);
  return accepted.parse(await response.json());
}

/** Cancels a group by its route. */
export async function cancel(run: TestRun, id: string): Promise<GroupShown> {
  const response = await run.send("DELETE", `/groups/${id}`);
  expect(response.status).toBe(200);
  return accepted.parse(await response.json());
}

/** Waits until the upstream has seen that many connections of a key closed. */
export async function untilClosed(key: string, count: number): Promise<void> {
  await expect.poll(async () => (await upstreamStats(key)).closed, { interval: 10 }).toBe(count);
}

/** Checks that nothing is reserved, no limit was exceeded, and the log has everything once. */
export async function expectAtRest(run: TestRun): Promise<void> {
  // The log is written to its end before the budget is read.
  const lines = await logOf(run);
  const budget = await run.object.budget();
  if (budget === null) throw new Error("no such run");
  for (const line of Object.values(budget)) {
    expect(line.reserved).toBe(0);
    if (line.limit !== null) expect(line.spent).toBeLessThanOrEqual(line.limit);
  }
  expectLoggedOnce(lines, budget.usd.spent);
}

/** How many rows each table of a run's object has, also those that were not made yet; empty where there are no tables. */
export function rowCounts(run: TestRun): Promise<Record<string, number>> {
  return runInDurableObject(run.object, (_: RunObject, { storage: { sql } }) => {
    const all = sql.exec<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table'").toArray();
    const made = all.filter(({ name }) => !name.startsWith("_cf_"));
    if (made.length === 0) return {};
    const none = Object.fromEntries(MIGRATIONS.map(({ table }) => [table, 0]));
    const counted = made.map(
      ({ name }) => [name, Number(sql.exec(`SELECT count(*) AS n FROM "${name}"`).one()["n"])] as const,
    );
    return { ...none, ...Object.fromEntries(counted) };
  });
}

/** When a run's alarm will ring, epoch ms; null = never. */
export function alarmOf(run: TestRun): Promise<number | null> {
  return runInDurableObject(run.object, (_: RunObject, state) => state.storage.getAlarm());
}
