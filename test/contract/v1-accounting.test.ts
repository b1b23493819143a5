/** The gateway's record of a mix of 500 calls is the upstream's own bill, as far as anybody can know it. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { Biller, PIECES } from "./v1-billing.ts";
import { CAP_BASE, drawer, KINDS, plan, type PlannedCall } from "./v1-plan.ts";
import { budgetOf, logOf, post, startV1, type Budget, type V1World } from "./v1-world.ts";

let world: V1World;
beforeAll(async () => void (world = await startV1({ max_attempts: 3 })));
afterAll(() => world.stop());

const COUNT = 500;
const AT_ONCE = 40;
const SEED = 20_261_121;

const amounts = z.object({
  usd: z.number(),
  calls: z.int(),
  prompt_tokens: z.int(),
  completion_tokens: z.int(),
  new_tokens: z.int(),
});
const ended = z.object({ outcome: z.string(), estimated: z.boolean(), charged: amounts });
const started = z.object({ reserved: amounts });

const nano = (usd: number): number => Math.round(usd * 1e9);
const sum = (figures: readonly number[]): number => figures.reduce((total, figure) => total + figure, 0);

/** Sends one call, and disconnects if its kind requires that. */
async function send(call: PlannedCall, token: string, biller: Biller, draw: () => number): Promise<void> {
  const { kind, number } = call;
  const leaveAt =
    kind === "left in the middle" ? 3 : kind === "left at some event" ? Math.floor(draw() * PIECES) : null;
  let text = "";
  const take = (bytes: Buffer): void => {
    text += bytes.toString();
    const events = text.split("\n\n").length - 1;
    if (leaveAt !== null && events >= leaveAt) asked.leave();
    if (kind === "left at the end" && text.includes("[DONE]")) asked.leave();
  };
  const asked = post(world.gateway, "/v1/chat/completions", token, call.body, { take });
  if (kind === "left at once") setTimeout(asked.leave, Math.floor(draw() * 10));
  if (kind === "left before headers") {
    while (!biller.arrived.has(number)) await new Promise((resolve) => setTimeout(resolve, 5));
    asked.leave();
  }
  await asked.body;
}

/** Reads a run's budget repeatedly; records for each read whether all limits held. */
function watchLimits(token: string): { stop: () => Promise<boolean[]> } {
  const looks: boolean[] = [];
  const over = new AbortController();
  const looking = (async () => {
    for (; !over.signal.aborted; await new Promise((resolve) => setTimeout(resolve, 20)))
      looks.push(withinLimits(await budgetOf(world.gateway, token)));
  })();
  return {
    stop: async () => {
      over.abort();
      await looking;
      return looks;
    },
  };
}

function withinLimits(budget: Budget): boolean {
  return Object.values(budget).every(
    ({ limit, spent, reserved }) => limit === null || spent + reserved <= limit + 1e-12,
  );
}

describe("a mix of 500 streams, aborts, errors and retries", () => {
  it(
    "is charged what the upstream billed if its outcome arrived, or else its reservation, marked as an estimate",
    { tags: ["slow"] },
    async () => {
      const calls = plan(COUNT, SEED);
      const biller = new Biller(calls);
      const draw = drawer(SEED + 1);
      world.upstream.serve(biller.answer);
      const run = await world.gateway.openRun({ budget: { usd: 3, calls: 1_000 }, max_parallel: 32 });
      const watched = watchLimits(run.token);
      const queue = [...calls];
      const clients = Array.from({ length: AT_ONCE }, async () => {
        for (let call = queue.shift(); call !== undefined; call = queue.shift())
          await send(call, run.token, biller, draw);
      });
      await Promise.all(clients);
      await expect.poll(async () => (await budgetOf(world.gateway, run.token)).usd.reserved).toBe(0);
      const looks = await watched.stop();
      expect(looks.length).toBeGreaterThan(20);
      expect(looks.every(Boolean)).toBe(true);

      const log = await logOf(world.gateway, run);
      const ends = log.filter(({ event_type }) => event_type === "attempt_ended").map((line) => ended.parse(line));
      const reserved = log
        .filter(({ event_type }) => event_type === "attempt_started")
        .map((line) => started.parse(line));
      const { usd, calls: counted } = await budgetOf(world.gateway, run.token);
      expect(nano(usd.spent)).toBe(sum(ends.map(({ charged }) => nano(charged.usd))));
      expect(counted).toMatchObject({ spent: sum(ends.map(({ charged }) => charged.calls)), reserved: 0 });

      // Each line names its call: by the tokens that it used, or by the cap that was reserved for it.
      const exact = new Map<number, number[]>();
      const estimated = new Map<number, number[]>();
      let free = 0;
      for (const { estimated: isEstimated, charged } of ends) {
        if (charged.usd === 0) free += 1;
        else if (isEstimated) add(estimated, charged.completion_tokens - CAP_BASE, nano(charged.usd));
        else add(exact, charged.prompt_tokens - 1, nano(charged.usd));
      }
      const wrong: unknown[] = [];
      let freeExpected = 0;
      for (const { number, kind, usage } of calls) {
        const expected = KINDS[kind];
        const costs = exact.get(number) ?? [];
        const estimates = estimated.get(number) ?? [];
        const bill = usage.prompt * 1_000 + usage.completion * 2_000;
        const billed = kind === "names its cost" ? Math.floor(bill / 2) : bill;
        const count = (end: string) => expected.filter((each) => each === end).length;
        freeExpected += count("free");
        const fits =
          count("either") === 1
            ? costs.length + estimates.length <= 1
            : costs.length === count("exact") && estimates.length === count("estimated");
        const arrived = biller.arrived.get(number) ?? 0;
        if (!fits || costs.some((cost) => cost !== billed) || costs.length > arrived)
          wrong.push({ number, kind, costs, estimates, billed, arrived });
      }
      expect(wrong).toEqual([]);
      // A client that leaves before its call was sent leaves an attempt that costs nothing, or none.
      const leftAtOnce = calls.filter(({ kind }) => kind === "left at once").length;
      expect(free).toBeGreaterThanOrEqual(freeExpected);
      expect(free).toBeLessThanOrEqual(freeExpected + leftAtOnce);

      // An estimate is the whole reservation that was made for it, and the upstream never billed more than was charged.
      const reservations = new Map(
        reserved.map(({ reserved: { completion_tokens, usd: each } }) => [completion_tokens, nano(each)]),
      );
      for (const [number, costs] of estimated)
        for (const cost of costs) expect(cost).toBe(reservations.get(CAP_BASE + number));
      expect(nano(usd.spent)).toBeGreaterThanOrEqual(sum([...biller.billed.values()]));
      const exactBill = sum([...exact.keys()].map((number) => sum(exact.get(number) ?? [])));
      expect(exactBill + sum([...estimated.values()].flat())).toBe(nano(usd.spent));
      expect(exact.size).toBeGreaterThan(200);
      expect(estimated.size).toBeGreaterThan(80);
    },
  );
});

describe("a budget that does not cover all requests", () => {
  it("is never exceeded: calls wait, are clamped, and are then refused with 402", { tags: ["slow"] }, async () => {
    const calls = plan(120, SEED + 2).map(
      (call, at) => ({ ...call, kind: at % 2 === 0 ? "whole" : "chunked" }) as const,
    );
    const biller = new Biller(calls);
    world.upstream.serve(biller.answer);
    const run = await world.gateway.openRun({ budget: { usd: 0.06 }, max_parallel: 32 });
    const watched = watchLimits(run.token);
    const statuses = await Promise.all(
      calls.map(async ({ body }) => {
        const asked = post(world.gateway, "/v1/chat/completions", run.token, body);
        const [{ statusCode }] = await Promise.all([asked.response, asked.body]);
        return statusCode;
      }),
    );
    await expect.poll(async () => (await budgetOf(world.gateway, run.token)).usd.reserved).toBe(0);
    const looks = await watched.stop();
    expect(looks.every(Boolean)).toBe(true);
    const served = statuses.filter((status) => status === 200).length;
    expect(served).toBeGreaterThan(10);
    expect(statuses.filter((status) => status === 402).length).toBe(calls.length - served);
    expect(served).toBeLessThan(calls.length);
    const { usd } = await budgetOf(world.gateway, run.token);
    expect(nano(usd.spent)).toBe(sum([...biller.billed.values()]));
  });
});

function add(map: Map<number, number[]>, number: number, cost: number): void {
  map.set(number, [...(map.get(number) ?? []), cost]);
}
