/**
 * What pull workers report of their items. Whoever has a run's token can complete the run's own items, so a report counts up to the
 * reservation: it spends no budget above the run, and none of the operator's day.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { documentOf, errorOf, startWorld, type RunAccess, type World } from "./world.ts";

const UPSTREAMS = {
  sim: { kind: "simulated" },
  paid: { kind: "pull", models: ["agent"], prices: { "*": { input: 1, output: 2 } }, max_in_flight: 512 },
  free: { kind: "pull", models: ["agent"], max_in_flight: 512 },
};
const DAY_USD = 1;
/** Hostile completions; `FANOUT_HOSTILE_COMPLETIONS=10000` takes half a minute. */
const COMPLETIONS = Number(process.env["FANOUT_HOSTILE_COMPLETIONS"] ?? 1_000);

let world: World;
beforeAll(
  async () => void (world = await startWorld(undefined, { UPSTREAMS, ROOT_BUDGET_USD_PER_DAY: String(DAY_USD) })),
);
afterAll(() => world.stop());

const items = z.object({ items: z.array(z.looseObject({ lease_id: z.string() })) });

async function openChild(root: RunAccess, usd: number): Promise<RunAccess> {
  const opened = z
    .looseObject({ id: z.string(), token: z.string() })
    .parse((await root.send("/runs", { json: { budget: { usd, prompt_tokens: 50_000 }, max_parallel: 64 } })).json);
  return {
    id: opened.id,
    token: opened.token,
    send: (path, request) => world.send(path, { token: opened.token, ...request }),
  };
}

/** Starts a batch and claims its items. */
async function claimed(run: RunAccess, model: string, count: number): Promise<string[]> {
  const prompts = Array.from({ length: count }, (_, index) => `p${index}`);
  const batch = { json: { prompts, model, max_tokens: 20 }, headers: { prefer: "respond-async" } };
  expect((await run.send("/batch", batch)).status).toBe(202);
  const taken: string[] = [];
  while (taken.length < count) {
    const answer = await run.send(`/runs/${run.id}/claim`, { json: { max: 64, wait_ms: 20_000 } });
    taken.push(...items.parse(answer.json).items.map(({ lease_id }) => lease_id));
  }
  return taken;
}

const complete = (run: RunAccess, leaseId: string, usage: Record<string, unknown>) =>
  run.send(`/runs/${run.id}/complete`, { json: { lease_id: leaseId, text: "t", usage } });

/** Whether the day has room for a run with this budget. */
async function fitsDay(usd: number): Promise<boolean> {
  const opened = await world.sendAsOperator("/runs", { json: { budget: { usd } } });
  if (opened.status !== 201) return false;
  const { id } = z.looseObject({ id: z.string() }).parse(opened.json);
  await world.sendAsOperator(`/runs/${id}/close`, { json: {} });
  return true;
}

const HOSTILE = [
  { prompt_tokens: 1, completion_tokens: 1, cost: 1_000_000 },
  { prompt_tokens: 0, completion_tokens: 0, cost: 0.000_1 },
  { prompt_tokens: 1_000_000, completion_tokens: 1 },
  { prompt_tokens: 1, completion_tokens: 1_000_000 },
  { prompt_tokens: 1_000_000_000, completion_tokens: 1_000_000_000, cost: 0 },
];

describe("what a pull worker reports", () => {
  it.each([
    [{ prompt_tokens: 1, completion_tokens: 1, cost: 1_000_000 }, "usage.cost", "$1000000"],
    [{ prompt_tokens: 1, completion_tokens: 1_000 }, "usage", "$0.002001"],
    [{ prompt_tokens: 60_000, completion_tokens: 1, cost: 0 }, "usage.prompt_tokens", "60000"],
  ])("is refused above the reservation, which the error names: %j", async (usage, param, amount) => {
    const root = await world.openRun({ budget: { usd: 0.01 } });
    const child = await openChild(root, 0.005);
    const [lease = ""] = await claimed(child, "paid/agent", 1);
    const answer = await complete(child, lease, usage);
    expect([answer.status, errorOf(answer)]).toEqual([
      400,
      expect.objectContaining({ code: "invalid_request", param }),
    ]);
    expect(errorOf(answer).message).toContain(amount);
    expect(errorOf(answer).message).toMatch(/reserved for this item/);
    const { reserved } = (await documentOf(child)).budget.usd;
    // The item is still the worker's, who may report all that was reserved.
    expect((await complete(child, lease, { prompt_tokens: 1, completion_tokens: 1, cost: reserved })).status).toBe(200);
    expect((await documentOf(child)).budget.usd).toMatchObject({ spent: reserved, reserved: 0 });
    await root.send(`/runs/${root.id}/close`, { json: {} });
  });

  it("costs nothing where workers have no price, whatever they report", async () => {
    const root = await world.openRun({ budget: { usd: 0.01 } });
    const [lease = ""] = await claimed(root, "free/agent", 1);
    expect((await complete(root, lease, { prompt_tokens: 1, completion_tokens: 1, cost: 0.000001 })).status).toBe(400);
    expect((await complete(root, lease, { prompt_tokens: 9_000, completion_tokens: 9_000 })).status).toBe(200);
    expect((await documentOf(root)).budget.usd).toMatchObject({ spent: 0, reserved: 0 });
    await root.send(`/runs/${root.id}/close`, { json: {} });
  });

  it(
    "moves no total above it, however often a child of a cent repeats it",
    { tags: ["slow"], timeout: 120_000 },
    async () => {
      const root = await world.openRun({ budget: { usd: 0.5 }, max_parallel: 64 });
      const child = await openChild(root, 0.01);
      const leases = await claimed(child, "paid/agent", 64);
      const statuses = new Set<number>();
      for (let sent = 0; sent < COMPLETIONS; sent += leases.length) {
        const usage = HOSTILE[(sent / leases.length) % HOSTILE.length] ?? {};
        for (const { status } of await Promise.all(leases.map((lease) => complete(child, lease, usage)))) {
          statuses.add(status);
        }
      }
      expect([...statuses]).toEqual([400]);
      const before = (await documentOf(child)).budget.usd;
      expect(before.spent).toBe(0);
      for (const lease of leases) await complete(child, lease, { prompt_tokens: 1, completion_tokens: 1 });
      await child.send(`/runs/${child.id}/close`, { json: {} });
      await expect.poll(async () => (await documentOf(root)).budget.usd.reserved).toBe(0);
      const spent = (await documentOf(root)).budget.usd.spent;
      expect(spent).toBeCloseTo(64 * 3e-6, 9);
      await root.send(`/runs/${root.id}/close`, { json: {} });
      // The day has what the runs have really spent, and nothing else.
      await expect.poll(() => fitsDay(DAY_USD - 0.001)).toBe(true);
      expect(await fitsDay(DAY_USD)).toBe(false);
    },
  );
});
