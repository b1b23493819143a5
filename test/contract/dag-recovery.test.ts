/**
 * A graph whose gateway is killed in the middle of it and started again on the same disk. Nothing of what is ready is stored: it
 * follows from what has ended.
 */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { startRestarting, type Restarting } from "./restarting.ts";
import type { RunAccess } from "./world.ts";

/** Longest until everything runs again, ms: a lease and some. */
const RECOVERY_MS_MAX = 90_000;
const ELEMENTS = ["one", "two", "three", "four", "five", "six"];

const graph = z.looseObject({
  status: z.string(),
  tasks: z.record(
    z.string(),
    z.looseObject({
      status: z.string(),
      output: z.string().nullable().optional(),
      outputs: z.array(z.string().nullable()).optional(),
    }),
  ),
});

const body = {
  tasks: [
    { id: "find", prompt: JSON.stringify(ELEMENTS) },
    { id: "each", foreach: "{{find.output.json}}", max_items: 40, prompt: "{{delay/150}} {{item}}" },
    { id: "check", foreach: "{{each.outputs}}", prompt: "{{item}} again" },
    { id: "bad", prompt: "{{status/400}} {{find.output}}" },
    { id: "after", prompt: "{{bad.output}}" },
    { id: "report", prompt: "{{check.outputs}}" },
  ],
};

let place: Restarting;
let run: RunAccess;
let id: string;
beforeAll(async () => {
  place = await startRestarting();
  run = await place.openRun({ default_model: "up-1", budget: { usd: 1 }, max_parallel: 2 });
  const accepted = await run.send("/dag", {
    json: body,
    headers: { prefer: "respond-async", "idempotency-key": "killed" },
  });
  id = z.looseObject({ id: z.string() }).parse(accepted.json).id;
  await vi.waitUntil(() => place.upstream.counters.requests >= 6, { interval: 5, timeout: RECOVERY_MS_MAX });
  await place.restart();
}, RECOVERY_MS_MAX);
afterAll(() => place.stop());

describe("a graph whose gateway is killed", () => {
  it(
    "ends with the outputs that it has without a kill, each task once",
    { tags: ["slow"], timeout: RECOVERY_MS_MAX },
    async () => {
      let ended = graph.parse((await run.send(`/dag/${id}?wait_ms=20000`)).json);
      while (ended.status === "running") ended = graph.parse((await run.send(`/dag/${id}?wait_ms=20000`)).json);
      const checked = ELEMENTS.map((item) => `{{delay/150}} ${item} again`);
      expect(ended.status).toBe("partial");
      expect(ended.tasks["check"]?.outputs).toEqual(checked);
      expect(ended.tasks["report"]?.output).toBe(checked.join("\n\n"));
      expect([ended.tasks["bad"]?.status, ended.tasks["after"]?.status]).toEqual(["failed", "skipped"]);
      // Those that were at the upstream when the gateway died are sent once more, and no other.
      for (const [prompt, sends] of place.upstream.counters.sends) expect([prompt, sends <= 2]).toEqual([prompt, true]);
      const again = [...place.upstream.counters.sends.values()].filter((sends) => sends > 1);
      expect(again.length).toBeLessThanOrEqual(2);
    },
  );

  it("is found by its Idempotency-Key after the restart, at no cost", { tags: ["slow"] }, async () => {
    const { requests } = place.upstream.counters;
    const answer = await run.send("/dag", { json: body, headers: { "idempotency-key": "killed" } });
    expect(z.looseObject({ id: z.string() }).parse(answer.json).id).toBe(id);
    expect(place.upstream.counters.requests).toBe(requests);
  });
});
