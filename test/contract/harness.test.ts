import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startGateway } from "../support/gateway.ts";
import type { Gateway, GatewayOptions } from "../support/gateway.ts";
import { startUpstream } from "../support/upstream.ts";
import type { TestUpstream } from "../support/upstream.ts";

describe("a gateway on plain workerd", () => {
  const started: Gateway[] = [];
  const start = async (options: GatewayOptions = {}) => {
    const gateway = await startGateway({ entryPoint: "test/support/fixtures/counting-worker.ts", ...options });
    started.push(gateway);
    return gateway;
  };
  afterEach(() => Promise.all(started.splice(0).map((gateway) => gateway.stop())));

  it(
    "gives the Worker its vars, text as text and the rest as JSON, whatever they contain",
    { tags: ["slow"] },
    async () => {
      const vars = { TEXT: 'quotes " and \\, lines\n, é, \u0001', NESTED: { list: [1, null, "\u0002"] } };
      const gateway = await start({ vars });
      const seen: unknown = await (await gateway.fetch("/vars")).json();
      expect(seen).toMatchObject({ ...vars, ADMIN_KEY: gateway.adminKey, DEFAULT_MODEL: "sim/echo" });
    },
  );

  it("keeps what its objects stored through a SIGKILL and a restart on the same directory", async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "fanout-test-"));
    const first = await start({ dataDir });
    expect(await (await first.fetch("/count")).json()).toBe(1);
    expect(await (await first.fetch("/count")).json()).toBe(2);
    await first.kill();
    await expect(first.fetch("/count")).rejects.toThrow();
    const second = await start({ dataDir });
    expect(await (await second.fetch("/count")).json()).toBe(3);
    await second.stop();
    await rm(dataDir, { recursive: true });
  });

  it("reaches an upstream on a loopback address", async () => {
    const upstream = await startUpstream();
    const gateway = await start();
    const url = encodeURIComponent(`${upstream.baseUrl}/chat/completions`);
    const answer = await gateway.fetch(`/fetch?url=${url}`, { json: chat("through the gateway") });
    expect(await answer.json()).toMatchObject({ choices: [{ message: { content: "through the gateway" } }] });
    await upstream.stop();
  });

  it("opens a run as the operator", async () => {
    const gateway = await start();
    expect(await gateway.openRun({ name: "a run" })).toEqual({
      id: "run-1",
      token: "granted",
      asked: { name: "a run" },
    });
  });

  it("that cannot be served throws an error with the reason", { tags: ["slow"] }, async () => {
    const { url } = await start();
    await expect(start({ port: Number(new URL(url).port) })).rejects.toThrow(/address already in use/i);
  });
});

describe("an upstream on loopback", () => {
  let upstream: TestUpstream;
  beforeAll(async () => {
    upstream = await startUpstream(({ prompt }) => (prompt === "fail" ? { status: 429, retryAfterS: 2 } : {}));
  });
  afterEach(() => upstream.forget());
  afterAll(() => upstream.stop());

  it("answers and fails as its handler says", async () => {
    expect((await send(upstream.baseUrl, "ok")).status).toBe(200);
    const failed = await send(upstream.baseUrl, "fail");
    expect([failed.status, failed.headers.get("retry-after")]).toEqual([429, "2"]);
  });

  it("counts requests, peak and sends of each prompt, and resets them on request", async () => {
    await Promise.all(["a", "b", "a"].map((prompt) => send(upstream.steered("barrier/3"), prompt)));
    expect(upstream.counters).toMatchObject({ requests: 3, peakInFlight: 3, abandoned: 0 });
    expect(upstream.counters.sends).toEqual(
      new Map([
        ["a", 2],
        ["b", 1],
      ]),
    );
    upstream.forget();
    expect(upstream.counters).toMatchObject({ requests: 0, peakInFlight: 0 });
  });

  it("passes a barrier when enough calls wait at once, and answers 504 when not", async () => {
    const statuses = async (count: number, withinMs: number) => {
      const url = upstream.steered(`barrier/16/within/${withinMs}`);
      return Promise.all(Array.from({ length: count }, async () => (await send(url, "met?")).status));
    };
    expect(new Set(await statuses(16, 30_000))).toEqual(new Set([200]));
    expect(new Set(await statuses(15, 150))).toEqual(new Set([504]));
  });

  it("counts a client that disconnects before the answer", async () => {
    await expect(send(upstream.steered("fault/hang"), "never", AbortSignal.timeout(50))).rejects.toThrow();
    await expect.poll(() => upstream.counters).toMatchObject({ inFlight: 0, abandoned: 1 });
  });

  it("breaks the connection in the middle of a body on fault/reset", async () => {
    const answer = await send(upstream.steered("fault/reset"), "cut");
    expect(answer.status).toBe(200);
    await expect(answer.text()).rejects.toThrow();
  });
});

function chat(prompt: string) {
  return { model: "test-small", messages: [{ role: "user", content: prompt }] };
}

function send(baseUrl: string, prompt: string, signal: AbortSignal | null = null): Promise<Response> {
  return fetch(`${baseUrl}/chat/completions`, { method: "POST", body: JSON.stringify(chat(prompt)), signal });
}
