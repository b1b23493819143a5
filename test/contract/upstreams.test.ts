/** `GET /upstreams` and `POST /upstreams/:name/resume`: the operator's view of the keys that all runs share. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { resumedUpstream, upstreamList, type UpstreamList } from "../../src/contract/operator/upstreams.ts";
import { startGateway, type Gateway } from "../support/gateway.ts";
import { startUpstream, type TestUpstream } from "../support/upstream.ts";
import { answerOf } from "./world.ts";

/** The server behind `queried` and `streamed`, which answers after this time. */
const DELAY_MS = 40;
let provider: TestUpstream;
/** The server behind `queues` works on a few calls at once, for this time each; the others wait for their turn. */
const WORKERS = 4;
const WORK_MS = 300;
let queueing: TestUpstream;

/** The time after which each call is answered that comes now. */
function queueOf(workers: number, workMs: number): () => number {
  const freeAtMs = Array.from({ length: workers }, () => 0);
  return () => {
    const nowMs = Date.now();
    const worker = freeAtMs.indexOf(Math.min(...freeAtMs));
    const endMs = Math.max(nowMs, freeAtMs[worker] ?? 0) + workMs;
    freeAtMs[worker] = endMs;
    return endMs - nowMs;
  };
}

const upstreamsOf = (providerUrl: string, queueUrl: string) => ({
  first: { kind: "simulated" },
  second: { kind: "openai", base_url: "http://127.0.0.1:9/v1", api_key: "sk-second-key", models: ["x"] },
  third: {
    kind: "openai",
    base_url: "http://127.0.0.1:9/v1",
    keys: ["secret:THIRD_A", "secret:THIRD_B"],
    models: ["y"],
  },
  queried: { kind: "openai", base_url: providerUrl, models: ["*"], aggregate: "json" },
  streamed: { kind: "openai", base_url: providerUrl, models: ["*"], aggregate: "stream" },
  queues: { kind: "openai", base_url: queueUrl, models: ["*"] },
});

let gateway: Gateway;
beforeAll(async () => {
  provider = await startUpstream();
  const delayMs = queueOf(WORKERS, WORK_MS);
  queueing = await startUpstream(() => ({ delayMs: delayMs() }));
  const UPSTREAMS = upstreamsOf(provider.steered(`delay/${DELAY_MS}`), queueing.baseUrl);
  const keys = { THIRD_A: "sk-third-a", THIRD_B: "sk-third-b" };
  gateway = await startGateway({ vars: { UPSTREAMS, ...keys, DEFAULT_MODEL: "first/echo" } });
});
afterAll(async () => {
  await gateway.stop();
  await Promise.all([provider.stop(), queueing.stop()]);
});

const send = async (path: string, token: string, method = "GET") =>
  await answerOf(await gateway.fetch(path, { method, token }));

describe("GET /upstreams", () => {
  it("has one entry per key in the configured order: open, as long as no limit was met", async () => {
    const { status, json, text } = await send("/upstreams", gateway.adminKey);
    expect(status).toBe(200);
    expect(upstreamList().strict().parse(json).data).toMatchObject([
      { name: "first", key: null, class: "open", reason: null, waiting: 0, in_flight: 0, stopped: null },
      { name: "second", key: null, class: "open", reason: null, waiting: 0, in_flight: 0, stopped: null },
      { name: "third", key: "secret:THIRD_A", class: "open" },
      { name: "third", key: "secret:THIRD_B", class: "open" },
      { name: "queried", key: null, class: "open", latency: [] },
      { name: "streamed", key: null, class: "open", latency: [] },
      { name: "queues", key: null, class: "open", latency: [] },
    ]);
    expect(text).not.toContain("sk-");
  });

  it.each(["queried", "streamed"])(
    "has how long the calls of each model take, by what runs report: %s",
    async (name) => {
      const run = await gateway.openRun({ unpriced: "free" });
      const body = { prompts: Array.from({ length: 24 }, (_, at) => `${at}`), model: `${name}/m` };
      let shown: UpstreamList["data"][number]["latency"] = [];
      const samples = async (): Promise<number> => {
        // A run reports with later calls what earlier ones have taken.
        const batch = await answerOf(await gateway.fetch("/batch", { token: run.token, json: body }));
        expect(batch.json).toMatchObject({ status: "completed" });
        const { json } = await send("/upstreams", gateway.adminKey);
        shown =
          upstreamList()
            .parse(json)
            .data.find((gate) => gate.name === name)?.latency ?? [];
        return shown[0]?.samples ?? 0;
      };
      await expect.poll(samples, { timeout: 60_000, interval: 200 }).toBeGreaterThanOrEqual(24);
      expect(shown).toMatchObject([{ model: "m" }]);
      const { ttfb_p50_ms: firstMs, p95_ms: wholeMs } = shown[0] ?? {};
      expect(firstMs).toBeGreaterThanOrEqual(DELAY_MS * 0.9);
      expect(wholeMs).toBeGreaterThanOrEqual(firstMs ?? Infinity);
    },
  );

  it(
    "shows a server that lets calls queue as shrunk, to a width near what it works on at once",
    { tags: ["slow"] },
    async () => {
      const run = await gateway.openRun({ unpriced: "free", max_parallel: 64 });
      const body = { prompts: Array.from({ length: 2_000 }, (_, at) => `${at}`), model: "queues/m" };
      const headers = { prefer: "respond-async" };
      const opened = await answerOf(await gateway.fetch("/batch", { token: run.token, json: body, headers }));
      expect(opened.status).toBe(202);
      const look = async () => {
        const { json } = await send("/upstreams", gateway.adminKey);
        return upstreamList()
          .parse(json)
          .data.find(({ name }) => name === "queues");
      };
      let shown: Awaited<ReturnType<typeof look>>;
      const shownClass = async () => (shown = await look())?.class;
      await expect.poll(shownClass, { timeout: 60_000, interval: 200 }).toBe("shrunk");
      expect(shown?.reason).toBe("width");
      expect(shown?.width).toBeLessThanOrEqual(32);
      await answerOf(await gateway.fetch(`/runs/${run.id}/close`, { token: run.token, method: "POST" }));
    },
  );

  it("is the operator's", async () => {
    const run = await gateway.openRun();
    expect(await send("/upstreams", run.token)).toMatchObject({ status: 403, json: { error: { code: "forbidden" } } });
    const resume = await send("/upstreams/first/resume", run.token, "POST");
    expect(resume).toMatchObject({ status: 403, json: { error: { code: "forbidden" } } });
  });
});

describe("POST /upstreams/:name/resume", () => {
  it("changes nothing of a key that is not stopped", async () => {
    const { status, json } = await send("/upstreams/first/resume", gateway.adminKey, "POST");
    expect(status).toBe(200);
    const resumed = resumedUpstream().strict().parse(json);
    expect(resumed).toMatchObject({ resumed: 0, data: [{ name: "first", class: "open" }] });
  });

  it("does not find an upstream that is not configured", async () => {
    const answer = await send("/upstreams/fourth/resume", gateway.adminKey, "POST");
    expect(answer).toMatchObject({ status: 404, json: { error: { code: "not_found" } } });
  });
});
