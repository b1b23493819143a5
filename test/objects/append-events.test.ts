/** Large posts to a run's log are prepared in slices, between which the object serves others: they keep their order, and are whole. */
import { runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import type { RunObject } from "../../src/index.ts";
import { RUN_STORED_BYTES_MAX } from "../../src/limits.ts";
import { openRun, type TestRun } from "../support/objects-run.ts";

const EVENT_CHARS = 100_000;

const events = (name: string, count: number, chars = EVENT_CHARS) =>
  Array.from({ length: count }, (_, at) => ({
    json: JSON.stringify({ event_type: name, step: at, output: "x".repeat(chars) }),
    parallelGroupId: null,
  }));

/** The types and steps of the run's log, in its order. */
async function logOf(run: TestRun): Promise<string[]> {
  const lines = (await (await run.send("GET", `/runs/${run.id}/log`)).text()).trim().split("\n");
  return lines.map((line) => {
    const { event_type, step } = JSON.parse(line) as { event_type: string; step: number | null };
    return `${event_type} ${step}`;
  });
}

const named = (name: string, count: number) => Array.from({ length: count }, (_, at) => `${name} ${at}`);

describe("posts to the log", () => {
  it("come in the order in which they arrived, each in one piece, though a large one is prepared in slices", async () => {
    const run = await openRun();
    const large = run.object.appendLog(events("large", 40), null);
    const small = run.object.appendLog(events("small", 2, 10), null);
    // The object answers others while it prepares them.
    const document = run.object.document(null);
    const [first, second] = await Promise.all([large, small, document]);
    expect([first, second]).toEqual([
      { ok: true, seq: 41 },
      { ok: true, seq: 43 },
    ]);
    expect((await logOf(run)).slice(1)).toEqual([...named("large", 40), ...named("small", 2)]);
  });

  it("are refused whole if there is no room for all of them", async () => {
    const run = await openRun();
    const rows = await runInDurableObject(run.object, (_: RunObject, { storage }) => storage.sql.databaseSize);
    await run.object.filesStored(RUN_STORED_BYTES_MAX - rows - 10 * EVENT_CHARS);
    expect(await run.object.appendLog(events("many", 20), null)).toMatchObject({ ok: false });
    expect(await run.object.appendLog(events("few", 2), null)).toMatchObject({ ok: true });
    expect((await logOf(run)).slice(1)).toEqual(named("few", 2));
  });

  it("of a run that is none, or is another's, are nobody's", async () => {
    const run = await openRun();
    expect(await run.object.appendLog(events("x", 1, 10), "another")).toBeNull();
  });
});
