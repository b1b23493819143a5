/** What waits says why: at a limited key, at one that does not work, for the budget, for a permit. Limited providers, real waits. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { batchReply } from "../../src/contract/batch.ts";
import { groupWaits, resultsPage, runningGroup } from "../../src/contract/groups.ts";
import { runDocument, type RunDocument } from "../../src/contract/runs.ts";
import { startGateway, type Gateway } from "../support/gateway.ts";
import { steady } from "../support/limited/latency.ts";
import type { Limiter } from "../support/limited/limiter.ts";
import { OpenAiLimiter } from "../support/limited/openai-limiter.ts";
import { noLimiter, perSecondLimiter, stoppingLimiter } from "../support/limited/other-limiters.ts";
import { startLimitedServer, type LimitedServer } from "../support/limited/server.ts";
import { ownLine } from "./log-lines.ts";
import { answerOf, PROVIDER_KEY, type Answer } from "./world.ts";

const WIDTH = 8;
const PRICES = { "*": { input: 1, output: 1 } };
const CAP_TOKENS = 16;

type Place = {
  provider: LimitedServer;
  operator: (path: string, method: string) => Promise<Answer>;
  /** What the gateway that runs now has written to its terminal. */
  output: () => string;
  openRun: (body?: Record<string, unknown>) => Promise<Client>;
  /** SIGKILL of the whole gateway, and a start on the same disk. */
  restart: () => Promise<void>;
};

type Client = {
  /** Opens a batch that nobody waits for; returns its path. */
  openBatch: (prompts: readonly string[], rules?: Record<string, unknown>) => Promise<string>;
  /** Sends a request whose group nobody waits for; returns its path. */
  open: (path: string, json: Record<string, unknown>) => Promise<string>;
  send: (path: string, json?: unknown, headers?: Record<string, string>) => Promise<Answer>;
  run: () => Promise<RunDocument>;
};

/** A gateway of one test's own in front of one provider: gates are shared by all runs of a gateway. */
async function startPlace(limiter: Limiter, latencyMs = 5): Promise<Place> {
  const provider = await startLimitedServer(limiter, steady(latencyMs));
  const dataDir = await mkdtemp(join(tmpdir(), "fanout-waiting-"));
  const up = { kind: "openai", base_url: provider.baseUrl, api_key: "secret:PROVIDER_KEY", models: ["*"] };
  const vars = {
    UPSTREAMS: { up: { ...up, prices: PRICES } },
    DEFAULT_MODEL: "up/m",
    PROVIDER_KEY,
    ADMIN_KEY: "operator-key-of-these-tests-0123",
  };
  const start = (): Promise<Gateway> => startGateway({ vars, dataDir });
  let gateway = await start();
  onTestFinished(async () => {
    await gateway.stop();
    await provider.stop();
    await rm(dataDir, { recursive: true, force: true });
  });
  const openRun = async (body: Record<string, unknown> = {}): Promise<Client> => {
    const { token } = await gateway.openRun({ max_parallel: WIDTH, budget: { usd: 1 }, ...body });
    const send = async (path: string, json?: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
      answerOf(await gateway.fetch(path, { token, headers, ...(json === undefined ? {} : { json }) }));
    const open = async (path: string, json: Record<string, unknown>): Promise<string> => {
      const answer = await answerOf(await gateway.fetch(path, { token, headers: { prefer: "respond-async" }, json }));
      expect(answer.status, answer.text).toBe(202);
      return answer.headers.get("location") ?? "";
    };
    return {
      send,
      open,
      openBatch: (prompts, rules = {}) => open("/batch", { prompts, max_tokens: CAP_TOKENS, ...rules }),
      run: async () => runDocument().parse((await send("/run")).json),
    };
  };
  return {
    provider,
    operator: async (path, method) => answerOf(await gateway.fetch(path, { method, token: gateway.adminKey })),
    output: () => gateway.output(),
    openRun,
    restart: async () => {
      await gateway.kill();
      gateway = await start();
    },
  };
}

const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `prompt ${index}`);

const stateOf = async ({ send }: Client, group: string) => runningGroup().parse((await send(group)).json);

/** The answer of a group that ends within the time of a slow machine. */
async function ended({ send }: Client, group: string) {
  await expect
    .poll(async () => z.looseObject({ status: z.string() }).parse((await send(`${group}?wait_ms=1000`)).json).status, {
      timeout: 40_000,
    })
    .not.toBe("running");
  return batchReply().parse((await send(group)).json);
}

/** Waits until all attempts have ended and the rest of a group waits for a key that does not work. */
async function stopped(client: Client, group: string, slots: number): Promise<void> {
  await expect
    .poll(async () => (await stateOf(client, group)).waiting_for, { timeout: 10_000 })
    .toEqual([{ gate: "up", reason: "stopped", ready_in_ms: expect.toSatisfy(isWait), slots }]);
}

const isWait = (value: unknown): boolean =>
  value === null || (typeof value === "number" && value >= 0 && value <= 60_000);

const BLOCKED = [{ upstream: "up", key: null, reason: "invalid_key", since: expect.stringMatching(/Z$/) }];

describe("a batch with a deadline that its key cannot keep", () => {
  it("fails what is queued at once, with the time until it could start", { tags: ["slow"] }, async () => {
    // Six calls a minute: the bucket admits six at once, and then one every ten seconds.
    const { openRun } = await startPlace(new OpenAiLimiter({ requestsPerMinute: 6, tokensPerMinute: 1e9 }));
    const client = await openRun();
    const startedMs = performance.now();
    const path = await client.openBatch(names(20), { deadline_ms: 9_000 });
    const group = batchReply().parse((await client.send(`${path}?wait_ms=20000`)).json);
    expect(performance.now() - startedMs).toBeLessThan(9_000);
    expect([group.status, group.items.filter(({ status }) => status === "completed").length]).toEqual(["partial", 6]);
    const failures = group.errors.filter((error) => error !== null);
    expect(failures.map(({ code }) => code)).toEqual(Array(14).fill("upstream_rate_limited"));
    expect(failures.at(-1)).toMatchObject({ retryable: true, upstream: "up", retry_after_ms: expect.any(Number) });
  });
});

describe("a batch on a wrong key", () => {
  it(
    "shows the stop at once: in the group, in its slots, in the run and in the log; no slot has failed",
    { tags: ["slow"] },
    async () => {
      const { provider, openRun } = await startPlace(stoppingLimiter("invalid_api_key", 0));
      const client = await openRun();
      expect((await client.run()).blocked).toBeNull();
      const openedMs = performance.now();
      const group = await client.openBatch(names(100));
      await stopped(client, group, 100);
      expect(performance.now() - openedMs).toBeLessThan(10_000);
      const { counts, status } = await stateOf(client, group);
      expect([status, counts.queued, counts.failed]).toEqual(["running", 100, 0]);
      expect(provider.rejected().length).toBeLessThanOrEqual(WIDTH);
      const { blocked } = await client.run();
      expect(blocked).toEqual(BLOCKED);
      const page = resultsPage().parse((await client.send(`${group}/results?limit=3`)).json);
      for (const { result, error, waiting_for } of page.data)
        expect([result, error, waiting_for]).toMatchObject([null, null, { gate: "up", reason: "stopped" }]);
      const run = await client.run();
      const log = (await client.send(`/runs/${run.id}/log`)).text
        .trim()
        .split("\n")
        .map((line) => ownLine.parse(JSON.parse(line)));
      const throttled = log.filter(({ event_type }) => event_type === "throttled");
      expect(throttled).toMatchObject([
        { gate: "up", cause: "invalid_key", waiting_for: { gate: "up", reason: "stopped" } },
      ]);
    },
  );

  it(
    "loses no single call that another run makes while a probe is due and no run has anything waiting",
    { tags: ["slow"] },
    async () => {
      const { openRun, operator } = await startPlace(stoppingLimiter("invalid_api_key", 0));
      const client = await openRun();
      await stopped(client, await client.openBatch(names(20)), 20);
      await operator(`/runs/${(await client.run()).id}`, "DELETE");
      const probeAt = async (): Promise<number> =>
        Date.parse(String(/"next_probe_at":"([^"]+)"/.exec((await operator("/upstreams", "GET")).text)?.[1]));
      await expect.poll(async () => (await probeAt()) <= Date.now(), { timeout: 60_000 }).toBe(true);
      // It is sent, and fails as the provider says: it is not lost, and costs nothing.
      const other = await openRun();
      const answer = await other.send("/query", { prompt: "one", max_tokens: CAP_TOKENS });
      expect([answer.status, answer.json]).toMatchObject([502, { error: { code: "upstream_error", status: 401 } }]);
      expect((await other.run()).budget.usd).toMatchObject({ spent: 0, reserved: 0 });
    },
  );

  it("warns the operator on the gateway's terminal, in the provider's words", { tags: ["slow"] }, async () => {
    const { openRun, output } = await startPlace(stoppingLimiter("invalid_api_key", 0));
    const client = await openRun();
    await stopped(client, await client.openBatch(names(20)), 20);
    const line = "Incorrect API key provided. (invalid_key): calls to up wait until it works";
    await expect.poll(output).toContain(line);
    expect(output().split(line)).toHaveLength(2);
    expect(output()).not.toContain(PROVIDER_KEY);
  });

  it("continues when the operator has repaired the key and resumes the upstream", { tags: ["slow"] }, async () => {
    const limiter = stoppingLimiter("invalid_api_key", 0);
    const { provider, openRun, operator } = await startPlace(limiter);
    const client = await openRun();
    const group = await client.openBatch(names(50));
    await stopped(client, group, 50);
    limiter.recover();
    // A probe of the gate may have come first: then there is nothing left to resume.
    const resumed = await operator("/upstreams/up/resume", "POST");
    expect(resumed).toMatchObject({ status: 200, json: { data: [{ name: "up", class: "open" }] } });
    const answer = await ended(client, group);
    expect([answer.status, answer.results]).toEqual(["completed", names(50)]);
    expect((await client.run()).blocked).toBeNull();
    expect(provider.admitted()).toHaveLength(50);
  });

  it("continues by itself once the key works again", { tags: ["slow"] }, async () => {
    const limiter = stoppingLimiter("insufficient_quota", 10);
    const { openRun } = await startPlace(limiter);
    const client = await openRun();
    const group = await client.openBatch(names(50));
    await stopped(client, group, 40);
    expect((await client.run()).blocked).toMatchObject([{ reason: "insufficient_quota" }]);
    limiter.recover();
    const answer = await ended(client, group);
    expect([answer.status, answer.results]).toEqual(["completed", names(50)]);
  });

  it(
    "ends at its deadline with an error that can be repeated, and no call of it is an answer",
    { tags: ["slow"] },
    async () => {
      const { provider, openRun } = await startPlace(stoppingLimiter("invalid_api_key", 0));
      const client = await openRun();
      const group = await client.openBatch(names(30), { deadline_ms: 3_000 });
      const answer = await ended(client, group);
      expect([answer.status, answer.counts.failed]).toEqual(["failed", 30]);
      for (const error of answer.errors) expect(error).toMatchObject({ code: "deadline_exceeded", retryable: true });
      // Those in flight at the stop, and probes.
      expect(provider.rejected().length).toBeLessThanOrEqual(WIDTH + 2);
      expect((await client.run()).blocked).toBeNull();
    },
  );

  it(
    "is still stopped after a SIGKILL, without another round of calls, and then continues",
    { tags: ["slow"] },
    async () => {
      const limiter = stoppingLimiter("invalid_api_key", 20);
      const { provider, openRun, operator, restart } = await startPlace(limiter);
      const client = await openRun();
      const group = await client.openBatch(names(60));
      await stopped(client, group, 40);
      const refused = provider.rejected().length;
      await restart();
      await stopped(client, group, 40);
      expect((await client.run()).blocked).toEqual(BLOCKED);
      // A probe of the new instance, and one of the gate's.
      expect(provider.rejected().length - refused).toBeLessThanOrEqual(2);
      limiter.recover();
      await operator("/upstreams/up/resume", "POST");
      const answer = await ended(client, group);
      expect([answer.status, answer.results]).toEqual(["completed", names(60)]);
    },
  );
});

describe("a batch at a limited key", () => {
  it("says which limit it waits for and when it continues", { tags: ["slow"] }, async () => {
    const limiter = new OpenAiLimiter({ requestsPerMinute: 60, tokensPerMinute: 1e6, fill: 0.2 });
    const { openRun } = await startPlace(limiter);
    const client = await openRun();
    const group = await client.openBatch(names(60));
    const isShown = (): Promise<boolean> =>
      stateOf(client, group).then(({ waiting_for }) =>
        waiting_for.some(
          (one) => "gate" in one && one.gate === "up" && one.reason === "requests_per_minute" && one.slots > 0,
        ),
      );
    await expect.poll(isShown, { timeout: 20_000 }).toBe(true);
    expect((await client.run()).blocked).toBeNull();
  });
});

describe("single calls without a deadline", () => {
  it.each([
    ["", false],
    [" if each has an Idempotency-Key", true],
  ])(
    "all have an answer at a key that rejects most of them with 429 and says nothing of its limit%s",
    { tags: ["slow"] },
    async (_, isNamed) => {
      const { provider, openRun } = await startPlace(perSecondLimiter(4));
      const client = await openRun({ max_parallel: 24 });
      const asked = names(24);
      const nameOf = (prompt: string) => (isNamed ? { "idempotency-key": prompt.replace(" ", "-") } : {});
      const send = (prompt: string) => client.send("/query", { prompt, max_tokens: CAP_TOKENS }, nameOf(prompt));
      const answers = await Promise.all(asked.map(send));
      expect(answers.map(({ status }) => status)).toEqual(asked.map(() => 200));
      expect(provider.admitted()).toHaveLength(asked.length);
      expect(provider.rejected().length).toBeGreaterThan(0);
    },
  );
});

describe("a graph", () => {
  it("says for each task that may not start which tasks it waits for", { tags: ["slow"] }, async () => {
    const { provider, openRun } = await startPlace(noLimiter(), 30_000);
    const client = await openRun();
    const tasks = [
      { id: "a", prompt: "alpha", max_tokens: CAP_TOKENS },
      { id: "b", prompt: "On {{a.output}}", max_tokens: CAP_TOKENS },
      { id: "c", prompt: "On {{a.output}} and {{b.output}}", max_tokens: CAP_TOKENS },
    ];
    const group = await client.open("/dag", { tasks });
    await expect.poll(() => provider.inFlight()).toBe(1);
    const { waiting_for } = z.looseObject({ waiting_for: groupWaits() }).parse((await client.send(group)).json);
    expect(waiting_for).toEqual([{ dependency: ["a", "b"], slots: 2 }]);
    const page = resultsPage().parse((await client.send(`${group}/results`)).json);
    expect(page.data.map((slot) => slot.waiting_for)).toEqual([
      null,
      { dependency: ["a"] },
      { dependency: ["a", "b"] },
    ]);
  });
});

describe("a batch of a narrow run", () => {
  it("waits for a permit, and for the budget where that is what is short", { tags: ["slow"] }, async () => {
    const { provider, openRun } = await startPlace(noLimiter(), 30_000);
    const narrow = await openRun({ max_parallel: 2 });
    const group = await narrow.openBatch(names(5));
    await expect.poll(() => provider.inFlight()).toBe(2);
    expect((await stateOf(narrow, group)).waiting_for).toEqual([{ permit: true, slots: 3 }]);
    const next = await narrow.openBatch(names(2));
    const first = await narrow.openBatch(names(1), { priority: "critical" });
    const queues = await Promise.all([group, next, first].map(async (each) => (await stateOf(narrow, each)).queue));
    expect(queues.map((queue) => queue?.queued_ahead)).toEqual([1, 4, 0]);
    expect(queues.map((queue) => queue?.queue_position)).toEqual([2, 5, 1]);
    const poor = await openRun({ budget: { completion_tokens: CAP_TOKENS } });
    const short = await poor.openBatch(names(4));
    await expect.poll(() => provider.inFlight()).toBe(3);
    expect((await stateOf(poor, short)).waiting_for).toEqual([{ budget: "completion_tokens", slots: 3 }]);
    const page = resultsPage().parse((await poor.send(`${short}/results`)).json);
    expect(page.data.map(({ waiting_for }) => waiting_for)).toEqual([
      null,
      ...Array.from({ length: 3 }, () => ({ budget: "completion_tokens" })),
    ]);
  });
});
