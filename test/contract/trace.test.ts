/** `GET /runs/:id/trace.json`: the whole log as spans and counters that viewers read, and whose sums are the log's. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lastOf, spansOf, traceFile } from "../support/trace-spans.ts";
import { logOf } from "./following.ts";
import { documentOf, errorOf, startWorld, type World } from "./world.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
afterAll(() => world.stop());

describe("GET /runs/:id/trace.json", () => {
  it(
    "has a span for each group, call and attempt of the log, all ended, and its sums",
    { tags: ["slow"] },
    async () => {
      const run = await world.openRun({ default_model: "up-1", window_ms: 5_000, budget: { usd: 1 } });
      const prompts = [
        "good",
        "{{status/400}} rejected",
        "{{status/503/first/1}} transient",
        "{{fault/reset/first/1}} x",
      ];
      await run.send("/batch", { json: { prompts: [...prompts, ...Array.from({ length: 60 }, (_, i) => `${i}`)] } });
      const tasks = [
        { id: "a", prompt: "x" },
        { id: "b", prompt: "{{a.output}} y" },
      ];
      expect((await run.send("/dag", { json: { tasks } })).status).toBe(200);
      const messages = [{ role: "user", content: "a stream" }];
      await run.send("/v1/chat/completions", { json: { model: "sim/echo", stream: true, messages } });
      await Promise.all([1, 2].map((i) => run.send("/query", { json: { prompt: `single ${i}` } })));
      await run.send(`/runs/${run.id}/flush`, { method: "POST" });
      await run.send("/log", { json: { event_type: "final_result", output: "</script><script>" } });
      await run.send(`/runs/${run.id}/close`, { method: "POST" });

      const lines = await logOf(run);
      const reply = await run.send(`/runs/${run.id}/trace.json`);
      expect([reply.status, reply.headers.get("content-type")]).toEqual([200, "application/json"]);
      const { traceEvents } = traceFile.parse(reply.json);
      const spans = spansOf(traceEvents);
      const count = (type: string) => lines.filter(({ event_type }) => event_type === type).length;
      const shown = {
        groups: spans.filter(({ cat }) => cat === "group").length,
        calls: spans.filter(({ cat, depth }) => cat === "call" && depth === 0).length,
        attempts: spans.filter(({ cat, depth }) => cat === "call" && depth === 1).length,
      };
      const logged = {
        groups: count("group_started"),
        calls: count("slot_completed"),
        attempts: count("attempt_started"),
      };
      expect(shown).toEqual(logged);
      expect(logged).toEqual({ groups: 3, calls: 69, attempts: 71 });
      expect(spans.filter(({ endMs }) => endMs === null)).toEqual([]);
      const charged = spans.filter(({ depth }) => depth === 1).map(({ args }) => Number(args["charged_usd"]));
      const { spent } = (await documentOf(run)).budget.usd;
      expect(charged.reduce((sum, usd) => sum + usd, 0)).toBeCloseTo(spent, 9);
      expect(lastOf(traceEvents, "USD")).toEqual({ spent, reserved: 0 });
      expect(lastOf(traceEvents, "calls in flight")).toEqual({ calls: 0 });
    },
  );

  it("of a run without calls is a trace", async () => {
    const run = await world.openRun();
    const { traceEvents } = traceFile.parse((await run.send(`/runs/${run.id}/trace.json`)).json);
    expect(spansOf(traceEvents)).toEqual([]);
    expect(traceEvents.map(({ name }) => name)).toEqual(["process_name", "run_opened"]);
  });

  it("is only for those who may read the log", async () => {
    const [run, other] = [await world.openRun(), await world.openRun()];
    const refused = await other.send(`/runs/${run.id}/trace.json`);
    expect([refused.status, errorOf(refused).code]).toEqual([404, "not_found"]);
    expect((await world.sendAsOperator(`/runs/${run.id}/trace.json`)).status).toBe(200);
  });
});
