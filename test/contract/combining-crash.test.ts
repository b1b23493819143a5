/** A gateway that is killed while a judge is asked: what is asked after the restart, and what it costs. */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import type { UpstreamAnswer, UpstreamCall } from "../support/upstream.ts";
import { endOf, openGroup } from "./following.ts";
import { startRestarting, type Restarting } from "./restarting.ts";
import { documentOf } from "./world.ts";

const JUDGED = JSON.stringify({ verdict: "trusted", confidence: 1, explanation: "Fine." });
const group = z.looseObject({
  aggregation: z.looseObject({ verdict: z.string(), groups: z.array(z.string()).length(1) }),
});

describe("a gateway killed while a judge is asked", () => {
  const calls: UpstreamCall[] = [];
  let isHeld = true;
  let place: Restarting;
  const judged = () => calls.filter(({ body }) => body["model"] === "up-judge");
  const answerOf = (call: UpstreamCall): UpstreamAnswer => {
    calls.push(call);
    if (call.body["model"] !== "up-judge") return {};
    return isHeld ? { fault: "hang" } : { text: JUDGED };
  };
  beforeAll(async () => void (place = await startRestarting(answerOf)));
  afterAll(() => place.stop());

  it("asks it once more in the same group, and no answer twice", { tags: ["slow"], timeout: 120_000 }, async () => {
    const run = await place.openRun({ budget: { usd: 1 }, max_parallel: 4, default_model: "up-1" });
    const aggregate = { strategy: "judge", rubric: "Are they right?", model: "up-judge", max_tokens: 100 };
    const { at } = await openGroup(run, { prompts: ["a", "b", "c"], max_tokens: 50, aggregate });
    // Its connection is lost with the gateway.
    const waiting = endOf(run, at).catch(() => null);
    await vi.waitUntil(() => judged().length === 1, { interval: 10, timeout: 30_000 });
    isHeld = false;
    await place.restart();
    await waiting;
    const [first, second] = [await endOf(run, at), await endOf(run, at)];
    expect(group.parse(first.json).aggregation).toMatchObject({ verdict: "trusted" });
    expect(second.json).toEqual(first.json);
    expect([judged().length, calls.length]).toEqual([2, 5]);
    const { budget } = await documentOf(run);
    expect([budget.usd?.reserved, budget.calls?.spent]).toEqual([0, 5]);
  });
});
