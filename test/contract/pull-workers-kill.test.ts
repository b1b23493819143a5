/** A gateway that is killed while pull workers hold its items, and started again on the same disk. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { z } from "zod";
import { errorOf, groupOf, type RunAccess } from "./world.ts";
import { startRestarting, type Restarting } from "./restarting.ts";

const vars = { UPSTREAMS: { agents: { kind: "pull", models: ["codex"] } } };

let place: Restarting;
beforeAll(async () => {
  place = await startRestarting();
  await place.restart(vars);
});
afterAll(() => place.stop());

const claimed = z.object({ items: z.array(z.looseObject({ lease_id: z.string(), prompt: z.string() })) });

async function claim(run: RunAccess, max: number) {
  const answer = await run.send(`/runs/${run.id}/claim`, { json: { max, wait_ms: 20_000, lease_ms: 600_000 } });
  return claimed.parse(answer.json).items;
}

it(
  "every slot ends once: what was completed keeps its answer, what was claimed is another item",
  { tags: ["slow"], timeout: 120_000 },
  async () => {
    const run = await place.openRun({ max_parallel: 4 });
    const prompts = ["a", "b", "c", "d"];
    const started = await run.send("/batch", {
      json: { prompts, model: "agents/codex" },
      headers: { prefer: "respond-async" },
    });
    const group = started.headers.get("location") ?? "";
    const before: Awaited<ReturnType<typeof claim>> = [];
    while (before.length < 4) before.push(...(await claim(run, 4)));
    const complete = (lease_id: string, text: string) =>
      run.send(`/runs/${run.id}/complete`, { json: { lease_id, text } });
    const first = before.find(({ prompt }) => prompt === "a");
    expect((await complete(first?.lease_id ?? "", "kept a")).status).toBe(200);

    await place.restart(vars);
    const after: typeof before = [];
    while (after.length < 3) after.push(...(await claim(run, 4)));
    expect(after.map(({ prompt }) => prompt).toSorted()).toEqual(["b", "c", "d"]);
    const lost = before.find(({ prompt }) => prompt === "b");
    expect(errorOf(await complete(lost?.lease_id ?? "", "old b"))).toMatchObject({ code: "lease_lost" });
    for (const { lease_id, prompt } of after) expect((await complete(lease_id, `new ${prompt}`)).status).toBe(200);
    const answer = groupOf(await run.send(`${group}?wait_ms=20000`));
    expect(answer.results).toEqual(["kept a", "new b", "new c", "new d"]);
    const [attemptsOfA, ...others] = answer.items.map(({ attempts }) => attempts);
    expect([attemptsOfA, others]).toEqual([1, [2, 2, 2]]);
  },
);
