/** `GET /metrics`: the sums of all runs, read by the OpenMetrics parser of Prometheus' Python client. */
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { reportLeftOut } from "../support/left-out.ts";
import { missingPackage, runWithPackages } from "../support/python-packages.ts";
import { presentVersion, startGateway, type Gateway, type OpenedRun } from "../support/gateway.ts";
import { documentOf, errorOf, startWorld, type World } from "./world.ts";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const missing = missingPackage("prometheus_client");
reportLeftOut("the check of GET /metrics by Prometheus' parser", missing);

let world: World;
beforeAll(async () => void (world = await startWorld()));
afterAll(() => world.stop());

const sampleList = z.array(z.object({ name: z.string(), labels: z.record(z.string(), z.string()), value: z.number() }));
type Samples = z.infer<typeof sampleList>;

const PARSER = `
import json, sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
print(json.dumps([{"name": s.name, "labels": s.labels, "value": s.value} for f in parse(sys.stdin.read()) for s in f.samples]))`;

/** The samples that a line-by-line reader finds: for machines without the parser. */
function samplesOf(text: string): Samples {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return lines.map((line) => {
    const [, name = "", labels = "", value = ""] = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    const pairs = [...labels.matchAll(/([a-z]+)="([^"]*)"/g)].map(([, label = "", text = ""]) => [label, text]);
    return { name, labels: Object.fromEntries(pairs), value: Number(value) };
  });
}

async function scrape(): Promise<{ text: string; samples: Samples }> {
  const { status, headers, text } = await world.sendAsOperator("/metrics");
  expect(status).toBe(200);
  expect(headers.get("content-type")).toBe("application/openmetrics-text; version=1.0.0; charset=utf-8");
  return { text, samples: samplesOf(text) };
}

/** The sum of the samples of a name with these labels. */
function sum(samples: Samples, name: string, labels: Record<string, string>): number {
  const fits = samples.filter(
    (each) => each.name === name && Object.entries(labels).every(([k, v]) => each.labels[k] === v),
  );
  return fits.reduce((total, { value }) => total + value, 0);
}

const ADMIN_KEY = "operator-of-the-metrics-that-are-killed";
const BURSTS = 12;

type Figures = { attempts: number; promptTokens: number; completionTokens: number; nanoUsd: number };

/** What a read of `/metrics` adds up to. */
async function counted(gateway: Gateway): Promise<Figures> {
  const samples = samplesOf(await (await gateway.fetch("/metrics", { token: ADMIN_KEY })).text());
  const tokens = (direction: string): number => sum(samples, "fanout_tokens_total", { direction });
  return {
    attempts: sum(samples, "fanout_calls_total", {}),
    promptTokens: tokens("prompt"),
    completionTokens: tokens("completion"),
    nanoUsd: Math.round(sum(samples, "fanout_cost_usd_total", {}) * 1e9),
  };
}

const spent = z.object({ spent: z.number() });
const figures = z.looseObject({
  metrics: z.looseObject({ attempts: z.number() }),
  budget: z.object({ usd: spent, prompt_tokens: spent, completion_tokens: spent, calls: spent }),
});

/** What the runs' own documents add up to. */
async function used(gateway: Gateway, runs: readonly OpenedRun[]): Promise<Figures> {
  const total: Figures = { attempts: 0, promptTokens: 0, completionTokens: 0, nanoUsd: 0 };
  for (const { id } of runs) {
    const { metrics, budget } = figures.parse(await (await gateway.fetch(`/runs/${id}`, { token: ADMIN_KEY })).json());
    total.attempts += metrics.attempts;
    total.promptTokens += budget.prompt_tokens.spent;
    total.completionTokens += budget.completion_tokens.spent;
    total.nanoUsd += Math.round(budget.usd.spent * 1e9);
  }
  return total;
}

describe("GET /metrics", () => {
  it(
    "has every call that was answered, with the tokens and dollars that its run was charged",
    { tags: ["slow"] },
    async () => {
      const run = await world.openRun({ default_model: "up-metered", budget: { usd: 1 } });
      const prompts = ["a", "b", "{{status/400}} rejected", "{{status/503/first/1}} transient"];
      await run.send("/batch", { json: { prompts } });
      await run.send("/query", { json: { prompt: "alone" } });
      await run.send("/v1/chat/completions", {
        json: { model: "up-metered", messages: [{ role: "user", content: "x" }] },
      });
      const { samples } = await scrape();
      const of = { upstream: "up", model: "up-metered" };
      const calls = (outcome: string): number => sum(samples, "fanout_calls_total", { ...of, outcome });
      expect([calls("success"), calls("rejected"), calls("failed")]).toEqual([5, 1, 1]);
      const { budget } = await documentOf(run);
      expect(sum(samples, "fanout_cost_usd_total", of)).toBeCloseTo(budget.usd.spent, 9);
      const tokens = (direction: string): number => sum(samples, "fanout_tokens_total", { ...of, direction });
      expect([tokens("prompt"), tokens("completion")]).toEqual([
        budget.prompt_tokens.spent,
        budget.completion_tokens.spent,
      ]);
      expect(sum(samples, "fanout_latency_seconds_count", of)).toBe(5);
      expect(sum(samples, "fanout_queue_seconds_count", of)).toBe(6);
    },
  );

  it("counts nothing twice, however often it is read", async () => {
    const run = await world.openRun({ default_model: "up-twice" });
    const calls = async (): Promise<number> =>
      sum((await scrape()).samples, "fanout_calls_total", { upstream: "up", model: "up-twice" });
    for (let expected = 1; expected <= 3; expected++) {
      await run.send("/query", { json: { prompt: `call ${expected}` } });
      expect([await calls(), await calls()]).toEqual([expected, expected]);
    }
  });

  it.skipIf(missing !== null)("is what Prometheus' own parser takes, whatever models are called", async () => {
    const run = await world.openRun({ unpriced: "free" });
    for (const model of ['up/a"b\\c', "up/a\nb", "up/__proto__", "sim/echo", "free-x"])
      await run.send("/query", { json: { prompt: "x", model } });
    const { text, samples } = await scrape();
    const parsed = sampleList.parse(JSON.parse(runWithPackages(PARSER, text)));
    expect(parsed).toHaveLength(samples.length);
    expect(sum(parsed, "fanout_calls_total", { upstream: "up", model: "__proto__", outcome: "success" })).toBe(1);
  });

  it("names no run, no prompt and no key", async () => {
    const run = await world.openRun({ name: "secret-name", default_model: "up-1" });
    await run.send("/query", { json: { prompt: "secret-prompt" } });
    const { text } = await scrape();
    expect(text).not.toMatch(/run_|secret-/);
  });

  it("is the operator's", async () => {
    const run = await world.openRun();
    expect(errorOf(await run.send("/metrics"))).toMatchObject({ code: "forbidden" });
    expect((await world.send("/metrics")).status).toBe(401);
  });

  it("loses nothing that it has shown when the gateway is killed", { tags: ["slow"] }, async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "fanout-metrics-"));
    const read = async (gateway: Awaited<ReturnType<typeof startGateway>>): Promise<number> => {
      const text = await (await gateway.fetch("/metrics", { token: gateway.adminKey })).text();
      return sum(samplesOf(text), "fanout_calls_total", { upstream: "sim" });
    };
    try {
      const first = await startGateway({ dataDir });
      const { token } = await first.openRun();
      await (await first.fetch("/batch", { token, json: { prompts: ["a", "b", "c"] }, method: "POST" })).text();
      expect(await read(first)).toBe(3);
      await first.kill();
      const second = await startGateway({ dataDir });
      expect(await read(second)).toBe(3);
      await second.stop();
    } finally {
      await rm(dataDir, { recursive: true, force: true });
    }
  });

  it(
    "adds up to the runs' own figures to the last unit, whatever gates end and gateways are killed between bursts",
    { tags: ["slow"] },
    async () => {
      const dataDir = await mkdtemp(join(tmpdir(), "fanout-metrics-"));
      onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
      const script = await presentVersion("test/support/fixtures/aborting-worker.ts");
      const start = () => startGateway({ dataDir, script, vars: { ADMIN_KEY } });
      let gateway = await start();
      const runs: OpenedRun[] = [];
      for (let burst = 0; burst < BURSTS; burst++) {
        const run = runs[burst % 2] ?? (await gateway.openRun({ budget: { usd: 1 } }));
        if (burst < 2) runs.push(run);
        const prompts = Array.from({ length: 5 }, (_, at) => `burst ${burst} ${at}`);
        await (await gateway.fetch("/batch", { token: run.token, json: { prompts } })).text();
        if (burst % 3 === 1) await gateway.fetch("/__abort/sim", { method: "POST" });
        if (burst % 3 === 2) {
          await gateway.kill();
          gateway = await start();
        }
        if (burst % 2 === 1) expect(await counted(gateway), `after burst ${burst}`).toEqual(await used(gateway, runs));
      }
      expect(await counted(gateway)).toEqual(await used(gateway, runs));
      expect((await used(gateway, runs)).attempts).toBe(5 * BURSTS);
      await gateway.stop();
    },
  );

  it("has the calls of a run that was deleted before anybody read them", async () => {
    const run = await world.openRun({ default_model: "up-deleted", retention_s: 0 });
    await run.send("/batch", { json: { prompts: ["a", "b"] } });
    await world.sendAsOperator(`/runs/${run.id}`, { method: "DELETE" });
    await expect.poll(async () => (await world.sendAsOperator(`/runs/${run.id}`)).status).toBe(404);
    const { samples } = await scrape();
    expect(sum(samples, "fanout_calls_total", { model: "up-deleted" })).toBe(2);
  });

  it("shows the upstreams whose gates reply when one does not, and names that one", { tags: ["slow"] }, async () => {
    const script = await presentVersion("test/support/fixtures/aborting-worker.ts");
    const simulated = { kind: "simulated" };
    const gateway = await startGateway({ script, vars: { UPSTREAMS: { sim: simulated, broken: simulated } } });
    onTestFinished(() => gateway.stop());
    const { token } = await gateway.openRun();
    await (await gateway.fetch("/query", { token, json: { prompt: "x" } })).text();
    const response = await gateway.fetch("/metrics", { token: gateway.adminKey });
    expect(response.status).toBe(200);
    const samples = samplesOf(await response.text());
    expect(sum(samples, "fanout_calls_total", { upstream: "sim" })).toBe(1);
    expect(sum(samples, "fanout_gate_unread", { upstream: "broken" })).toBe(1);
    expect(samples.filter(({ name }) => name === "fanout_gate_unread")).toHaveLength(1);
  });

  it("has every series that the Grafana dashboard shows", async () => {
    const file = fileURLToPath(new URL("../../docs/grafana-dashboard.json", import.meta.url));
    const dashboard = z
      .looseObject({
        panels: z.array(z.looseObject({ targets: z.array(z.looseObject({ expr: z.string() })).optional() })),
      })
      .parse(JSON.parse(await readFile(file, "utf8")));
    const { text } = await scrape();
    const known = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name = ""]) => name);
    const named = dashboard.panels.flatMap(({ targets = [] }) =>
      targets.flatMap(({ expr }) => expr.match(/fanout_[a-z_]+/g) ?? []),
    );
    expect(named.length).toBeGreaterThan(8);
    const unknown = named.filter((name) => !known.includes(name.replace(/_(total|bucket|sum|count)$/, "")));
    expect(unknown).toEqual([]);
  });
});
