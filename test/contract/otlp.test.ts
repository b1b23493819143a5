/** Traces to an OpenTelemetry collector: every call of a run is there, and a collector that fails costs no call. */
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { attributeOf, startCollector, type Collector, type OtlpSpan } from "../support/collector.ts";
import { logOf } from "./following.ts";
import { startRestarting } from "./restarting.ts";
import { documentOf, startWorld } from "./world.ts";

/** Long, for a machine that is busy: an export is due after five seconds. */
const EXPORTED_MS = 60_000;

async function collectorFor(answer?: (at: number) => number | null): Promise<Collector> {
  const collector = await startCollector(answer);
  onTestFinished(() => collector.stop());
  return collector;
}

async function worldWith(vars: Record<string, unknown>) {
  const world = await startWorld(undefined, vars);
  onTestFinished(() => world.stop());
  return world;
}

const named = (spans: OtlpSpan[], key: string) => spans.filter((span) => attributeOf(span, key) !== undefined);
const until = (check: () => void) => vi.waitFor(check, { timeout: EXPORTED_MS, interval: 100 });

describe("OTLP_ENDPOINT", () => {
  it(
    "receives a span for the run, each group, call and attempt of the log, in one tree",
    { tags: ["slow"] },
    async () => {
      const collector = await collectorFor();
      const world = await worldWith({
        OTLP_ENDPOINT: collector.url,
        OTLP_HEADERS: "authorization=secret:COLLECTOR_KEY, x-tenant=a=b",
        COLLECTOR_KEY: "Bearer of-the-collector",
      });
      const run = await world.openRun({ default_model: "up-1", window_ms: 5_000, budget: { usd: 1 } });
      const prompts = ["good", "{{status/400}} rejected", "{{status/503/first/1}} transient", "fourth"];
      await run.send("/batch", { json: { prompts } });
      await run.send("/query", { json: { prompt: "single" } });
      await run.send(`/runs/${run.id}/close`, { method: "POST" });
      await until(() => expect(collector.spans().some(({ name }) => name === "run")).toBe(true));

      const lines = await logOf(run);
      const count = (type: string) => lines.filter(({ event_type }) => event_type === type).length;
      const spans = collector.spans();
      const attempts = named(spans, "gen_ai.operation.name");
      expect(attempts).toHaveLength(count("attempt_started"));
      expect(named(spans, "fanout.attempts")).toHaveLength(count("slot_completed"));
      expect(named(spans, "fanout.group.id")).toHaveLength(count("group_started"));
      expect(count("slot_completed")).toBe(5);
      expect(count("attempt_started")).toBe(6);

      const ids = new Set(spans.map(({ spanId }) => spanId));
      expect(ids.size).toBe(spans.length);
      expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
      const roots = spans.filter(({ parentSpanId }) => parentSpanId === undefined || !ids.has(parentSpanId));
      expect(roots.map(({ name }) => name)).toEqual(["run"]);
      expect(spans.filter((span) => BigInt(span.startTimeUnixNano) > BigInt(span.endTimeUnixNano))).toEqual([]);

      const { spent } = (await documentOf(run)).budget.usd;
      const charged = attempts.map((span) => Number(attributeOf(span, "fanout.cost_usd")));
      expect(charged.reduce((sum, usd) => sum + usd, 0)).toBeCloseTo(spent, 9);
      expect(attempts.filter((span) => attributeOf(span, "gen_ai.provider.name") !== "up")).toEqual([]);
      expect(spans.filter((span) => attributeOf(span, "fanout.run.id") !== run.id)).toEqual([]);
      const [post] = collector.posts;
      expect(post?.path).toBe("/v1/traces");
      expect(post?.headers).toMatchObject({
        authorization: "Bearer of-the-collector",
        "x-tenant": "a=b",
        "content-type": "application/json",
      });
      const sent = collector.posts.map(({ body }) => body).join("\n");
      for (const secret of ["fourth", "of-the-collector", run.token]) expect(sent).not.toContain(secret);
    },
  );

  it(
    "receives what it could not take before, and no span twice, also after the gateway was killed",
    { tags: ["slow"] },
    async () => {
      const collector = await collectorFor((at) => (at < 2 ? 503 : 200));
      const world = await startRestarting();
      onTestFinished(() => world.stop());
      await world.restart({ OTLP_ENDPOINT: `${collector.url}/collect` });
      const run = await world.openRun({ default_model: "up-1", budget: { usd: 1 } });
      await run.send("/batch", { json: { prompts: ["a", "b", "c"] } });
      await until(() => expect(collector.posts.length).toBeGreaterThan(0));
      await world.restart({ OTLP_ENDPOINT: `${collector.url}/collect` });
      await run.send(`/runs/${run.id}/close`, { method: "POST" });
      await until(() => expect(collector.spans().some(({ name }) => name === "run")).toBe(true));
      const spans = collector.spans();
      expect(named(spans, "gen_ai.operation.name")).toHaveLength(3);
      expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length);
      expect(collector.posts.map(({ path }) => path)).toEqual(collector.posts.map(() => "/collect"));
    },
  );

  it.each([
    ["refuses connections", null],
    ["never answers", () => null],
    ["redirects", () => 302],
    ["answers 500", () => 500],
    ["answers 503", () => 503],
  ])("loses no call and no money while the collector %s", { tags: ["slow"] }, async (_, answer) => {
    const collector = answer === null ? null : await collectorFor(answer);
    const world = await worldWith({ OTLP_ENDPOINT: collector?.url ?? "http://127.0.0.1:9" });
    const run = await world.openRun({ default_model: "up-1", budget: { usd: 1 } });
    const send = (prompt: string) => run.send("/query", { json: { prompt } });
    await send("first");
    if (collector !== null) await until(() => expect(collector.posts.length).toBeGreaterThan(0));
    const answers = await Promise.all(Array.from({ length: 40 }, (_each, at) => send(`call ${at}`)));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect((await run.send(`/runs/${run.id}/close`, { method: "POST" })).status).toBe(200);
    expect(world.upstream.counters.requests).toBe(41);
    const { usd, calls } = (await documentOf(run)).budget;
    expect([calls.spent, usd.reserved]).toEqual([41, 0]);
    // What is not accepted waits in the run's log, not in requests: there is one at a time.
    expect(collector?.peakOpen ?? 1).toBe(1);
    // A redirect is not followed: the headers may hold a secret.
    expect(collector?.posts.filter(({ path }) => path !== "/v1/traces") ?? []).toEqual([]);
  });
});
