/** Whether the items of a batch are independent is checked before anything is sent. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { errorOf, groupOf, startWorld, type RunAccess, type World } from "./world.ts";

let world: World;
let run: RunAccess;
beforeAll(async () => {
  world = await startWorld();
  run = await world.openRun({ budget: { usd: 1 }, default_model: "up-1" });
});
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

const items = [
  { id: "review", prompt: "review auth.py", files: ["auth.py"] },
  { id: "test", prompt: "test auth.py", files: ["auth.py", "test.py"], writes: ["test.py"] },
  { id: "docs", prompt: "docs of x.py", files: ["x.py"], output_location: "docs.md" },
];
const conflicts = [{ file: "auth.py", items: ["review", "test"] }];
const batch = (policy: string | null, more: object = {}, headers: Record<string, string> = {}) =>
  run.send("/batch", { json: { items, ...(policy !== null && { validate_independence: policy }), ...more }, headers });
const passes = [
  ["no_dependency", true],
  ["complete_context", true],
  ["no_shared_state", false],
  ["distinct_output", true],
  ["aggregation_declared", false],
];

describe("validate_independence", () => {
  it("reports the five checks and the conflicts beside the results", async () => {
    const answer = await batch("report");
    expect(answer.status).toBe(200);
    expect(answer.json).toMatchObject({ status: "completed", conflicts, independence: { pass: false } });
    const { checks } = Object(Object(answer.json).independence);
    expect(checks.map(({ check, pass }: { check: string; pass: boolean }) => [check, pass])).toEqual(passes);
    expect(checks[2].items).toEqual(["review", "test"]);
  });

  it("is in the first event of a stream, and in the answer to a request that does not wait", async () => {
    const stream = await batch("report", {}, { accept: "application/x-ndjson" });
    expect(JSON.parse(stream.text.split("\n")[0] ?? "")).toMatchObject({ type: "group_started", conflicts });
    const accepted = await batch("report", {}, { prefer: "respond-async" });
    expect([accepted.status, accepted.json]).toMatchObject([202, { conflicts }]);
    await run.send(`${accepted.headers.get("location") ?? ""}?wait_ms=5000`);
  });

  it("refuses items that are not independent under reject, before anything is sent", async () => {
    const error = errorOf(await batch("reject"));
    expect(error).toMatchObject({ code: "invalid_graph", param: "items", retryable: false });
    expect(error.message).toContain('"auth.py" is named by review, test');
    expect(world.upstream.counters.requests).toBe(0);
  });

  it("runs independent items under reject", async () => {
    const answer = await batch("reject", { items: items.slice(1) });
    expect(groupOf(answer).status).toBe("completed");
    expect(answer.json).toMatchObject({ conflicts: [], independence: { pass: false } });
    const combined = await batch("reject", { items: items.slice(1), aggregate: { strategy: "merge" } });
    expect(combined.json).toMatchObject({ independence: { pass: true }, aggregation: { strategy: "merge" } });
  });

  it("checks a reference to a sibling, and prompts without ids by their index", async () => {
    const sibling = {
      items: [
        { id: "a", prompt: "one" },
        { id: "b", prompt: "more than {{a.output}}" },
      ],
    };
    expect(errorOf(await batch("reject", sibling)).message).toContain("no_dependency (b)");
    const prompts = { items: undefined, prompts: ["one", " "] };
    expect(errorOf(await batch("reject", prompts)).message).toContain("complete_context (1)");
  });

  it("says nothing unless it is asked, and refuses a policy that it does not know", async () => {
    const answer = await batch(null);
    expect(answer.json).not.toHaveProperty("independence");
    expect(answer.json).not.toHaveProperty("conflicts");
    expect(errorOf(await batch("ignore"))).toMatchObject({ param: "validate_independence" });
  });

  it("runs items that conflict one after another under serialize, and all others at once", async () => {
    const held = [
      { id: "first", prompt: "{{latch/serial-1}} first", files: ["auth.py"] },
      { id: "second", prompt: "{{latch/serial-2}} {{status/400}} second", writes: ["auth.py"] },
      { id: "third", prompt: "third", files: ["auth.py"] },
      { id: "other", prompt: "{{latch/serial-1}} other" },
    ];
    const running = batch("serialize", { items: held });
    await expect.poll(() => world.upstream.counters.inFlight).toBe(2);
    expect([...world.upstream.counters.sends.keys()].sort()).toEqual([held[0]?.prompt, held[3]?.prompt]);
    world.upstream.open("serial-1");
    await expect.poll(() => world.upstream.counters.requests).toBe(3);
    world.upstream.open("serial-2");
    const answer = await running;
    const group = groupOf(answer);
    expect([group.status, group.counts]).toMatchObject(["partial", { completed: 3, failed: 1, skipped: 0 }]);
    expect(group.results[2]).toBe("third");
    expect(answer.json).toMatchObject({
      object: "group",
      independence: { pass: false },
      conflicts: [{ file: "auth.py" }],
    });
    expect(world.upstream.counters.requests).toBe(4);
    // It is a batch for everybody who reads it later.
    const later = await run.send(`/groups/${group.id ?? ""}`);
    expect(groupOf(later).items.map(({ id }) => id)).toEqual(["first", "second", "third", "other"]);
    expect((await run.send(`/dag/${group.id ?? ""}/retry`, { method: "POST" })).status).toBe(404);
  });

  it("runs a batch without conflicts under serialize as any other", async () => {
    const answer = await batch("serialize", { items: items.slice(1) });
    expect(groupOf(answer).status).toBe("completed");
    expect(answer.json).toMatchObject({ conflicts: [] });
  });
});
