/** What an attempt has of its call is in its row, and an attempt that a restart finds has it again. */
import { describe, expect, it } from "vitest";
import { type keptOf, storedLease, type StoredLease } from "../../../../src/run/leases/shard.ts";
import { restoreLease } from "../../../../src/run/steps/restore.ts";
import { makeTarget, TestEngine } from "../../../support/engine.ts";

const KEPT: Required<ReturnType<typeof keptOf>> = {
  requestedCap: null,
  schemaRetries: 0,
  hasCourse: true,
  hedgeOf: "c.0",
  trace: { parent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01` },
};

/** The row of a single call's only attempt, with these facts beside its own. */
function rowOf(facts: ReturnType<typeof keptOf>): StoredLease {
  const engine = new TestEngine();
  engine.call("c", 0, {});
  expect(engine.startAll(0)).toEqual(["c"]);
  const [attempt] = engine.state.attempts.values();
  if (attempt === undefined) throw new Error("the call has no attempt");
  return JSON.parse(JSON.stringify(storedLease({ ...attempt.lease, ...facts })));
}

describe.each(Object.entries(KEPT))("an attempt's %s", (name, value) => {
  it("is in its row and in that of the attempt that was made of the row", () => {
    const row = rowOf({ [name]: value });
    expect(row).toHaveProperty(name, value);
    const { state } = new TestEngine();
    const shard = state.directShard();
    restoreLease(state, shard, row, makeTarget(), 10);
    const [restored] = shard.leases.values();
    expect(restored).toHaveProperty(name, value);
  });

  it("is not in its row if it has none", () => {
    expect(rowOf({})).not.toHaveProperty(name);
  });
});
