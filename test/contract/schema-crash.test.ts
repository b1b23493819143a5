/** A gateway that is killed while a call is asked again: what is asked after the restart, and what is delivered. */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import type { UpstreamAnswer, UpstreamCall } from "../support/upstream.ts";
import { endOf, openGroup } from "./following.ts";
import { startRestarting, type Restarting } from "./restarting.ts";

/** Longest until a call that was lost with the gateway is made again, ms: a lease and some. */
const RECOVERY_MS_MAX = 60_000;
const SCHEMA = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
const COUNT = 12;

const repairs = (calls: readonly UpstreamCall[]) => calls.filter(({ messageCount }) => messageCount === 3);

describe("a gateway killed while calls are asked again", () => {
  const calls: UpstreamCall[] = [];
  let isHeld = true;
  let place: Restarting;
  /** Never answers a second request before the kill: what is asked again is lost with the gateway. */
  const answerOf = (call: UpstreamCall): UpstreamAnswer => {
    calls.push(call);
    if (call.messageCount === 1) return { text: `not JSON ${call.prompt}` };
    return isHeld ? { fault: "hang" } : { text: '{"n":1}' };
  };
  beforeAll(async () => void (place = await startRestarting(answerOf)));
  afterAll(() => place.stop());

  it(
    "asks again with the same answer, and no first request is made twice",
    { tags: ["slow"], timeout: 120_000 },
    async () => {
      const run = await place.openRun({ default_model: "up-1", budget: { usd: 1 }, max_parallel: 6 });
      const prompts = Array.from({ length: COUNT }, (_, at) => `call ${at}`);
      const { at } = await openGroup(run, { prompts, schema: SCHEMA, max_tokens: 100 });
      await vi.waitUntil(() => repairs(calls).length >= 6, { interval: 10, timeout: RECOVERY_MS_MAX });
      const before = calls.length;
      isHeld = false;
      await place.restart();
      const group = z.looseObject({ items: z.array(z.looseObject({ status: z.string(), json: z.unknown() })) });
      const { items } = group.parse((await endOf(run, at)).json);
      expect(items).toMatchObject(prompts.map(() => ({ status: "completed", json: { n: 1 } })));
      const firsts = calls.filter(({ messageCount }) => messageCount === 1);
      expect(firsts.map(({ prompt }) => prompt).sort()).toEqual([...prompts].sort());
      expect(before).toBeLessThan(2 * COUNT);
      // Those that were at the provider when the gateway died are asked once more; the others were asked once.
      expect(repairs(calls).length).toBeLessThanOrEqual(COUNT + 6);
      for (const { body } of repairs(calls)) {
        const [first, answer] = body.messages;
        expect(answer).toEqual({ role: "assistant", content: `not JSON ${String(first?.content)}` });
      }
    },
  );
});
