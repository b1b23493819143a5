/** A gateway that is killed while a judge decides whether a batch has enough: what is asked after the restart. */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import type { UpstreamAnswer, UpstreamCall } from "../support/upstream.ts";
import { endOf, openGroup } from "./following.ts";
import { startRestarting, type Restarting } from "./restarting.ts";
import { documentOf } from "./world.ts";

const ENOUGH = JSON.stringify({ enough: true, reason: "Two are here." });
const stopped = z.looseObject({ counts: z.looseObject({}), judge_groups: z.array(z.string()) });

describe("a gateway killed while a judge is asked whether a batch has enough", () => {
  const calls: UpstreamCall[] = [];
  let isHeld = true;
  let place: Restarting;
  const sentTo = (model: string) => calls.filter(({ body }) => body["model"] === model).length;
  const answerOf = (call: UpstreamCall): UpstreamAnswer => {
    calls.push(call);
    if (call.body["model"] !== "up-judge") return {};
    return isHeld ? { fault: "hang" } : { text: ENOUGH };
  };
  beforeAll(async () => void (place = await startRestarting(answerOf)));
  afterAll(() => place.stop());

  it(
    "asks it once more in the same group, stops the batch, and stays stopped",
    { tags: ["slow"], timeout: 120_000 },
    async () => {
      const run = await place.openRun({ budget: { usd: 1 }, max_parallel: 1, default_model: "up-1" });
      const judge = { prompt: "Two are enough.", model: "up-judge", max_tokens: 100, every: 2 };
      const prompts = Array.from({ length: 9 }, (_, at) => `p${at}`);
      const { at } = await openGroup(run, { prompts, max_tokens: 50, stop_when: { judge } });
      const waiting = endOf(run, at).catch(() => null);
      await vi.waitUntil(() => sentTo("up-judge") === 1, { interval: 10, timeout: 30_000 });
      isHeld = false;
      await place.restart();
      await waiting;
      const first = await endOf(run, at);
      const group = stopped.parse(first.json);
      expect(group).toMatchObject({ status: "completed", saved_calls: 7, aborted_calls: 0 });
      expect([group.counts["completed"], group.judge_groups.length]).toEqual([2, 1]);
      await place.restart();
      expect((await endOf(run, at)).json).toEqual(first.json);
      expect([sentTo("up-1"), sentTo("up-judge")]).toEqual([2, 2]);
      const { budget } = await documentOf(run);
      expect([budget.usd?.reserved, budget.calls?.spent]).toEqual([0, 4]);
    },
  );
});
