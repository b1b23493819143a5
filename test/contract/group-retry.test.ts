/** A batch that has ended is made once more: what completed is kept. In this world a token costs $1 (in) or $2 (out) per million. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { endOf, logOf, openGroup } from "./following.ts";
import { documentOf, errorOf, groupOf, startWorld, type RunAccess, type World } from "./world.ts";

let world: World;
let run: RunAccess;
beforeAll(async () => {
  world = await startWorld();
  run = await world.openRun({ budget: { usd: 1 }, default_model: "up-1" });
});
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

const batch = async (json: object) => groupOf(await run.send("/batch", { json }));
const retry = (id: string | null, headers: Record<string, string> = {}) =>
  run.send(`/groups/${id}/retry`, { method: "POST", headers });
const requests = () => world.upstream.counters.requests;

describe("POST /groups/:id/retry", () => {
  it("makes only the calls that did not complete, and answers with all results in input order", async () => {
    const first = await batch({ prompts: ["a", "{{status/400/first/1}} b", "c", "{{status/400}} d"] });
    expect(first.status).toBe("partial");
    const { spent } = (await documentOf(run)).budget.usd;
    const before = requests();
    const again = groupOf(await retry(first.id));
    expect(again.id).not.toBe(first.id);
    expect(again.status).toBe("partial");
    expect(again.results).toEqual(["a", "{{status/400/first/1}} b", "c", expect.stringMatching(/^\[error\]/)]);
    expect(again.items.map(({ attempts }) => attempts)).toEqual([0, 1, 0, 1]);
    expect(requests()).toBe(before + 2);
    expect((await documentOf(run)).budget.usd.spent).toBeCloseTo(spent + again.usage.cost, 12);
    // The group that was retried stays as it was.
    expect(groupOf(await run.send(`/groups/${first.id}`)).errors[1]).not.toBeNull();
  });

  it("says in the log which group it retries", async () => {
    const first = await batch({ prompts: ["{{status/400}} x", "y"] });
    const again = groupOf(await retry(first.id));
    const started = (await logOf(run)).filter(({ event_type: type }) => type === "group_started");
    expect(started.at(-1)).toMatchObject({ parallel_group_id: again.id, retry_of: first.id, count: 2 });
    expect(started.at(-2)).not.toHaveProperty("retry_of");
  });

  it("of a batch that completed makes no call, and ends at once with its answers", async () => {
    const first = await batch({ prompts: ["a", "b"] });
    const before = requests();
    expect(groupOf(await retry(first.id))).toMatchObject({
      status: "completed",
      results: ["a", "b"],
      usage: { cost: 0 },
    });
    expect(requests()).toBe(before);
  });

  it("runs what was cancelled, keeps ids, votes and the rest of the rules, and can be retried itself", async () => {
    const { at } = await openGroup(run, {
      items: [
        { id: "x", prompt: "yes" },
        { id: "y", prompt: "{{fault/hang/first/1}} yes" },
      ],
      aggregate: { strategy: "vote" },
    });
    await expect.poll(async () => (await run.send(at)).json).toMatchObject({ counts: { completed: 1 } });
    await run.send(at, { method: "DELETE" });
    await endOf(run, at);
    const again = groupOf(await retry(at.slice(at.lastIndexOf("/") + 1)));
    expect(again.items.map(({ id }) => id)).toEqual(["x", "y"]);
    expect(again).toMatchObject({ status: "completed", aggregation: expect.objectContaining({ strategy: "vote" }) });
    expect(groupOf(await retry(again.id)).results).toEqual(again.results);
  });

  it("with an Idempotency-Key is one retry, however often it is sent", async () => {
    const first = await batch({ prompts: ["{{status/400}} x"] });
    const key = { "idempotency-key": crypto.randomUUID() };
    const once = groupOf(await retry(first.id, key));
    const answer = await retry(first.id, key);
    expect([groupOf(answer).id, answer.headers.get("idempotent-replayed")]).toEqual([once.id, "true"]);
    expect(groupOf(await retry(first.id)).id).not.toBe(once.id);
  });

  it("need not be waited for, and works for an operator who names no run", { tags: ["slow"] }, async () => {
    const first = await batch({ prompts: ["{{status/400/first/1}} x", "y"] });
    const headers = { prefer: "respond-async" };
    const answer = await world.sendAsOperator(`/groups/${first.id}/retry`, { method: "POST", headers });
    expect(answer.status).toBe(202);
    const ended = await endOf(run, answer.headers.get("location") ?? "");
    expect(groupOf(ended)).toMatchObject({ status: "completed", results: ["{{status/400/first/1}} x", "y"] });
  });

  it("is refused while the group runs, for a single call, for a group that there is not, and in a run that has ended", async () => {
    const own = await world.openRun({ default_model: "up-1" });
    const { at } = await openGroup(own, { prompts: ["{{fault/hang}} a"] });
    const refused = async (path: string, access = own): Promise<[number, string]> => {
      const answer = await access.send(`${path}/retry`, { method: "POST" });
      return [answer.status, errorOf(answer).message];
    };
    expect(await refused(at)).toEqual([400, expect.stringContaining("running")]);
    expect((await refused(at, run))[0]).toBe(404);
    const stored = await own.send("/query", {
      json: { prompt: "one" },
      headers: { "idempotency-key": "k", prefer: "respond-async" },
    });
    const single = stored.headers.get("location") ?? "";
    await endOf(own, single);
    expect(await refused(single)).toEqual([400, expect.stringContaining("single call")]);
    await own.send(at, { method: "DELETE" });
    await own.send(`/runs/${own.id}/close`, { method: "POST" });
    expect((await refused(at))[0]).toBeGreaterThanOrEqual(400);
  });
});
