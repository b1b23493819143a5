/** Routes and keys through restarts: what is in flight keeps its target, its key and its price. */
import { describe, expect, it } from "vitest";
import {
  expectSettled,
  expectWhole,
  openLatch,
  openRun,
  prompts,
  upstreamStats,
  type TestRun,
} from "../support/objects-run.ts";
import { crash, evict } from "../support/objects-direct.ts";

const restarts: [string, (run: TestRun) => Promise<void>][] = [
  ["crashes", (run) => crash(run.object)],
  ["is evicted", (run) => evict(run.object)],
];

/** Each test has its own latch by the name of its route. */
const ROUTES = [
  ["crossed", "dear.test", "dear"],
  ["woven", "keyed.test", "keyed"],
] as const;

describe("a batch at the later target of its route", () => {
  it.each(restarts.map(([how, happens], index) => ({ how, happens, route: ROUTES[index] ?? ROUTES[0] })))(
    "is charged there, and names it, if the object of its run $how meanwhile",
    async ({ how, happens, route: [route, host, upstream] }) => {
      // It may use the route, and no target by itself.
      const run = await openRun({ max_parallel: 4, budget: { usd: 1 }, models: [route] });
      const batch = run.batch({ prompts: prompts(8), model: route, max_tokens: 50 });
      await expect.poll(async () => (await upstreamStats(route, host)).inFlight).toBe(4);
      const ended = happens(run);
      // An object that crashes later would take grants of the next calls with it. Its eviction waits for what is in flight.
      if (how === "crashes") await ended;
      await openLatch(route, host);
      await ended;
      const answer = await batch;
      expectWhole(answer, prompts(8));
      expect(answer.items.map((item) => item.upstream)).toEqual(Array(8).fill(upstream));
      // Of a target that was not found again, the price would not be known.
      expect(answer.items.map(({ estimated }) => estimated)).toEqual(Array(8).fill(false));
      expect((await upstreamStats(route, host)).requests).toBe(8);
      expectSettled(await run.budget(), answer.usage.cost);
    },
  );
});
