/** A gateway that is killed between the steps of cascades and between samples: what was settled is not paid for again. */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import type { UpstreamAnswer, UpstreamCall } from "../support/upstream.ts";
import { endOf, openGroup } from "./following.ts";
import { startRestarting, type Restarting } from "./restarting.ts";
import { documentOf } from "./world.ts";

/** Longest until a call that was lost with the gateway is made again, ms: a lease and some. */
const RECOVERY_MS_MAX = 60_000;
const COUNT = 8;
const WIDTH = 4;

const group = z.looseObject({
  results: z.array(z.string()),
  items: z.array(z.looseObject({ steps: z.unknown().optional(), decided: z.unknown().optional(), attempts: z.int() })),
});

describe("a gateway killed in the middle of calls that are more than one answer", () => {
  const calls: UpstreamCall[] = [];
  let isHeld = true;
  let place: Restarting;
  /** The strong model, and every third sample, are answered after the restart only. */
  const answerOf = (call: UpstreamCall): UpstreamAnswer => {
    calls.push(call);
    const model = call.body["model"];
    if (model === "up-cheap") return { text: "" };
    const before = calls.filter(({ prompt, body }) => prompt === call.prompt && body["model"] === model).length;
    if (model === "up-sampled" && before <= 2) return { text: `answer ${before}` };
    return isHeld ? { fault: "hang" } : { text: model === "up-sampled" ? "answer 2" : "strong" };
  };
  const sendsOf = (model: string) => calls.filter(({ body }) => body["model"] === model);
  beforeAll(async () => void (place = await startRestarting(answerOf)));
  afterAll(() => place.stop());

  it("continues where each call was", { tags: ["slow"], timeout: 120_000 }, async () => {
    const run = await place.openRun({ budget: { usd: 1 }, max_parallel: 2 * WIDTH });
    const prompts = (name: string) => Array.from({ length: COUNT }, (_, at) => `${name} ${at}`);
    const shared = { max_tokens: 100, concurrency: WIDTH };
    const cascade = { prompts: prompts("cascade"), models: ["up-cheap", "up-strong"], ...shared };
    const sampled = { prompts: prompts("sample"), model: "up-sampled", samples: { agree: 0.6 }, ...shared };
    const [one, two] = [await openGroup(run, cascade), await openGroup(run, sampled)];
    const held = () => sendsOf("up-strong").length + sendsOf("up-sampled").length - 2 * WIDTH;
    await vi.waitUntil(() => held() >= 2 * WIDTH, { interval: 10, timeout: RECOVERY_MS_MAX });
    isHeld = false;
    await place.restart();
    const [ofCascade, ofSamples] = [
      group.parse((await endOf(run, one.at)).json),
      group.parse((await endOf(run, two.at)).json),
    ];
    expect(ofCascade.results).toEqual(prompts("strong").map(() => "strong"));
    expect(ofCascade.items).toMatchObject(
      prompts("").map(() => ({ steps: [{ model: "up-cheap", outcome: "empty", attempts: 1 }, {}] })),
    );
    expect(
      sendsOf("up-cheap")
        .map(({ prompt }) => prompt)
        .toSorted(),
    ).toEqual(prompts("cascade"));
    expect(ofSamples.results).toEqual(prompts("").map(() => "answer 2"));
    expect(ofSamples.items).toMatchObject(prompts("").map(() => ({ decided: true, samples: { made: 3, failed: 0 } })));
    // Those that were at the provider when the gateway died are made once more.
    expect(sendsOf("up-strong").length).toBeLessThanOrEqual(COUNT + WIDTH);
    expect(sendsOf("up-sampled").length).toBeLessThanOrEqual(3 * COUNT + WIDTH);
    const { budget } = await documentOf(run);
    expect([budget.usd?.reserved, budget.calls?.spent]).toEqual([0, calls.length]);
  });
});
