/** Credentials and routes: who may use which, and the headers of every reply. */
import { createHmac } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import {
  answerOf,
  documentOf,
  errorOf,
  groupOf,
  replyOf,
  startOwnGateway,
  startWorld,
  type RunAccess,
  type World,
} from "./world.ts";

const SIGNING_KEY = "a long signing key that this test knows";

let world: World;
let run: RunAccess;
beforeAll(async () => {
  world = await startWorld(undefined, { SIGNING_KEY });
  run = await world.openRun({ budget: { usd: 1 }, default_model: "up-1" });
});
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

/** Every route that requires a credential. */
const PROTECTED: [string, string][] = [
  ["POST", "/runs"],
  ["GET", "/runs"],
  ["GET", "/runs/any"],
  ["GET", "/run"],
  ["GET", "/budget"],
  ["POST", "/query"],
  ["POST", "/batch"],
  ["GET", "/groups/any"],
  ["GET", "/groups/any/results"],
  ["GET", "/groups/any/report"],
  ["DELETE", "/groups/any"],
  ["DELETE", "/groups/any/slots/0"],
  ["GET", "/runs/any/log"],
  ["POST", "/runs/any/log"],
  ["GET", "/runs/any/events"],
  ["GET", "/runs/any/usage"],
  ["POST", "/runs/any/stats/reset"],
  ["POST", "/runs/any/flush"],
  ["GET", "/upstreams"],
  ["POST", "/upstreams/any/resume"],
];

const json = { "content-type": "application/json" };
const ok = { method: "POST", headers: json, body: '{"prompt":"p"}' };

/** A token in the gateway's format, signed with a key of the test's choice. */
function tokenOf(claims: Record<string, unknown>, { key = SIGNING_KEY, alg = "HS256" } = {}): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const signed = `${part({ alg, typ: "JWT" })}.${part(claims)}`;
  const signature = alg === "none" ? "" : createHmac("sha256", key).update(signed).digest("base64url");
  return `fo-run-${signed}.${signature}`;
}

const inAnHour = () => Math.floor(Date.now() / 1000) + 3_600;

describe("a credential", () => {
  it.each(PROTECTED)("is required for %s %s", async (method, path) => {
    const answer = await world.send(path, { method });
    expect([answer.status, errorOf(answer).code]).toEqual([401, "invalid_api_key"]);
    expect(errorOf(answer)).toMatchObject({ type: "authentication_error", retryable: false });
    expect(answer.headers.get("www-authenticate")).toBe("Bearer");
    expect(answer.headers.get("x-should-retry")).toBe("false");
  });

  it("signed by this gateway is accepted for its run (the tokens of this test have the gateway's format)", async () => {
    const token = tokenOf({ sub: run.id, depth: 0, exp: inAnHour() });
    expect((await world.send("/run", { token })).status).toBe(200);
  });

  it.each<[string, () => string]>([
    ["that is a random text", () => "sk-anything"],
    ["that only looks like a run token", () => "fo-run-abc"],
    ["signed with another key", () => tokenOf({ sub: run.id, depth: 0, exp: inAnHour() }, { key: "guessed" })],
    ["that says it needs no signature", () => tokenOf({ sub: run.id, depth: 0, exp: inAnHour() }, { alg: "none" })],
    ["that names another algorithm", () => tokenOf({ sub: run.id, depth: 0, exp: inAnHour() }, { alg: "HS512" })],
    ["without an expiry", () => tokenOf({ sub: run.id, depth: 0 })],
    ["that names no run", () => tokenOf({ depth: 0, exp: inAnHour() })],
    ["whose claims were changed", () => withOtherClaims(run.token)],
    ["cut short", () => run.token.slice(0, -2)],
    ["of 10,000 characters", () => `fo-run-${"a".repeat(10_000)}`],
    ["that begins as the operator's key does", () => world.gateway.adminKey.slice(0, -1)],
  ])("%s is refused", async (_, token) => {
    for (const path of ["/query", "/batch"]) {
      const answer = await world.send(path, { ...ok, token: token() });
      expect([answer.status, errorOf(answer).code]).toEqual([401, "invalid_api_key"]);
    }
    expect(world.upstream.counters.requests).toBe(0);
  });

  it("that has expired is refused with its time of expiry", async () => {
    const answer = await world.send("/query", { ...ok, token: tokenOf({ sub: run.id, depth: 0, exp: 1_700_000_000 }) });
    expect([answer.status, errorOf(answer).message]).toEqual([401, expect.stringContaining("2023-11-14T22:13:20")]);
  });

  it("of a run that lasts some seconds is refused after it", { tags: ["slow"] }, async () => {
    const short = await world.openRun({ expires_in_s: 4 });
    expect((await short.send("/query", { json: { prompt: "p", model: "up-1" } })).status).toBe(200);
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    const answer = await short.send("/query", { json: { prompt: "late", model: "up-1" } });
    expect([answer.status, errorOf(answer).code]).toEqual([401, "invalid_api_key"]);
    const asOperator = await world.sendAsOperator("/query", {
      json: { prompt: "late", model: "up-1" },
      headers: { "x-fanout-run": short.id },
    });
    expect([asOperator.status, errorOf(asOperator).code]).toEqual([401, "invalid_api_key"]);
    expect(world.upstream.counters.sends.get("late")).toBeUndefined();
    expect((await world.sendAsOperator(`/runs/${short.id}`)).json).toMatchObject({ status: "expired" });
  });

  it("of another gateway is refused", async () => {
    const other = await startOwnGateway();
    const foreign = await other.openRun();
    expect((await world.send("/query", { ...ok, token: foreign.token })).status).toBe(401);
  });

  it("may be sent as x-api-key, as Anthropic's clients do", async () => {
    const answer = await world.send("/run", { headers: { "x-api-key": run.token } });
    expect(answer.json).toMatchObject({ id: run.id });
  });
});

describe("a run token", () => {
  it("cannot list runs, and can open child runs only", async () => {
    const listed = await run.send("/runs", { method: "GET" });
    expect([listed.status, errorOf(listed).code]).toEqual([403, "forbidden"]);
    const opened = await run.send("/runs", { json: {} });
    expect(opened.json).toMatchObject({ object: "run", parent_id: run.id, depth: 1 });
  });

  it("can read its own run, and finds no other", async () => {
    const other = await world.openRun();
    expect((await run.send(`/runs/${run.id}`)).json).toMatchObject({ id: run.id });
    const [existing, absent] = [await run.send(`/runs/${other.id}`), await run.send("/runs/run_absent")];
    expect([existing.status, errorOf(existing).code]).toEqual([404, "not_found"]);
    expect(errorOf(existing).message).toBe(errorOf(absent).message.replace("run_absent", other.id));
  });

  it.each([
    ["GET", "/log"],
    ["POST", "/log"],
    ["GET", "/events"],
    ["GET", "/usage"],
    ["POST", "/stats/reset"],
    ["POST", "/flush"],
  ])("gets 404 for %s %s of another run and of a run that does not exist", async (method, path) => {
    const other = await world.openRun();
    for (const id of [other.id, "run_absent"]) {
      const body = method === "POST" ? { json: { event_type: "mine" } } : { method };
      const answer = await run.send(`/runs/${id}${path}`, body);
      expect([answer.status, errorOf(answer).code]).toEqual([404, "not_found"]);
    }
    expect((await other.send(`/runs/${other.id}/log`)).text.trimEnd().split("\n")).toHaveLength(1);
  });

  it("cannot name another run", async () => {
    const other = await world.openRun();
    const answer = await run.send("/query", { ...ok, headers: { ...json, "x-fanout-run": other.id } });
    expect([answer.status, errorOf(answer).code]).toEqual([403, "forbidden"]);
    expect(await documentOf(other)).toMatchObject({ stats: { total_queries: 0 } });
  });
});

describe("the operator", () => {
  it("can use a run's routes by naming the run", async () => {
    const headers = { "x-fanout-run": run.id };
    expect((await world.sendAsOperator("/run", { headers })).json).toMatchObject({ id: run.id });
    expect(replyOf(await world.sendAsOperator("/query", { json: { prompt: "by the operator" }, headers })).text).toBe(
      "by the operator",
    );
    expect(groupOf(await world.sendAsOperator("/batch", { json: { prompts: ["b"] }, headers })).results).toEqual(["b"]);
    expect((await world.sendAsOperator("/budget", { headers })).json).toMatchObject({ usd: { limit: 1 } });
  });

  it.each([
    ["GET", "/run"],
    ["GET", "/budget"],
    ["POST", "/query"],
    ["POST", "/batch"],
    ["GET", "/groups/any"],
    ["DELETE", "/groups/any"],
  ])("must name a run for %s %s", async (method, path) => {
    const answer = await world.sendAsOperator(path, {
      method,
      ...(method === "POST" ? { body: '{"prompt":"p"}' } : {}),
    });
    expect([answer.status, errorOf(answer).param]).toEqual([400, "x-fanout-run"]);
  });

  it("gets 404 for a run that was never opened", async () => {
    const headers = { "x-fanout-run": "run_absent" };
    const answers = [
      await world.sendAsOperator("/runs/run_absent"),
      await world.sendAsOperator("/run", { headers }),
      await world.sendAsOperator("/budget", { headers }),
      await world.sendAsOperator("/query", { json: { prompt: "p", model: "up-1" }, headers }),
      await world.sendAsOperator("/batch", { json: { prompts: ["p"], model: "up-1" }, headers }),
    ];
    for (const answer of answers) expect([answer.status, errorOf(answer).code]).toEqual([404, "not_found"]);
    expect(world.upstream.counters.requests).toBe(0);
  });
});

describe("a request to an unknown route or method", () => {
  it.each([
    ["GET", "/nowhere"],
    ["POST", "/nowhere"],
    ["GET", "/query/"],
    ["GET", "/runs/"],
    ["POST", "/v1/nowhere"],
    ["GET", "/stubs/cobol"],
  ])("%s %s returns 404", async (method, path) => {
    const answer = await run.send(path, { method });
    expect([answer.status, errorOf(answer).code]).toEqual([404, "not_found"]);
    expect(answer.headers.get("x-should-retry")).toBe("false");
  });

  it.each([
    ["GET", "/query", "POST"],
    ["PUT", "/batch", "POST"],
    ["DELETE", "/runs", "POST, GET, HEAD"],
    ["POST", "/runs/x", "GET, HEAD, PATCH, DELETE"],
    ["GET", "/runs/x/close", "POST"],
    ["DELETE", "/runs/x/log", "GET, HEAD, POST"],
    ["POST", "/runs/x/events", "GET, HEAD"],
    ["GET", "/runs/x/flush", "POST"],
    ["POST", "/upstreams", "GET, HEAD"],
    ["GET", "/upstreams/x/resume", "POST"],
    ["POST", "/groups/x", "GET, HEAD, DELETE"],
    ["POST", "/groups/x/results", "GET, HEAD"],
    ["POST", "/run", "GET, HEAD"],
    ["POST", "/budget", "GET, HEAD"],
    ["POST", "/", "GET, HEAD"],
    ["POST", "/health", "GET, HEAD"],
    ["DELETE", "/openapi.json", "GET, HEAD"],
    ["PATCH", "/stubs/python", "GET, HEAD"],
  ])("%s %s returns 405 with the allowed methods", async (method, path, allow) => {
    for (const token of [undefined, run.token]) {
      const answer = await world.send(path, { method, ...(token === undefined ? {} : { token }) });
      expect([answer.status, errorOf(answer).code]).toEqual([405, "method_not_allowed"]);
      expect(answer.headers.get("allow")).toBe(allow);
    }
  });

  it("with HEAD is answered like GET, without a body", async () => {
    const answer = await world.send("/health", { method: "HEAD" });
    expect([answer.status, answer.text]).toEqual([200, ""]);
  });
});

describe("a client that sends its whole body before it reads", () => {
  const body = new Uint8Array(20 * 1024 * 1024).fill(0x20);

  it.each([
    ["a forged token", "/batch", { token: "forged" }, 401],
    ["a wrong path", "/nowhere", {}, 404],
    ["a wrong method", "/batch", { method: "PUT" }, 405],
    ["a wrong content type", "/batch", { headers: { "content-type": "text/csv" } }, 415],
  ])("can read the refusal of a body that has %s", { tags: ["slow"] }, async (_, path, request, status) => {
    const answers = await Promise.all(
      [1, 2, 3].map(() => run.send(path, { method: "POST", headers: json, body, ...request })),
    );
    expect(answers.map((answer) => answer.status)).toEqual([status, status, status]);
  });
});

describe("every reply", () => {
  it("has the client's request id", async () => {
    const headers = { "x-request-id": "my-id_1" };
    for (const path of ["/health", "/run", "/nowhere", "/query"]) {
      expect((await run.send(path, { headers })).headers.get("x-request-id")).toBe("my-id_1");
    }
    const answers = [
      await run.send("/query", { json: { prompt: "p" }, headers }),
      await run.send("/batch", { json: { prompts: ["p"] }, headers }),
      await run.send("/batch", { json: { prompts: ["p"] }, headers: { ...headers, accept: "application/x-ndjson" } }),
    ];
    for (const answer of answers) expect(answer.headers.get("x-request-id")).toBe("my-id_1");
  });

  it("has a new request id if the client sends none, or one that is unfit for a log line", async () => {
    const ids = new Set<string | null>();
    for (const sent of [{}, { "x-request-id": "a b" }, { "x-request-id": "x".repeat(65) }]) {
      ids.add((await world.send("/health", { headers: sent })).headers.get("x-request-id"));
    }
    expect(ids.size).toBe(3);
    for (const id of ids) expect(id).toMatch(/^[0-9a-f-]{36}$/);
  });

  it("under a run has the run's id and the remaining budget, on success and on failure", async () => {
    const limited = await world.openRun({ budget: { usd: 0.5 }, default_model: "up-1" });
    const answers = [
      await limited.send("/run"),
      await limited.send("/budget"),
      await limited.send(`/runs/${limited.id}`),
      await limited.send("/query", { json: { prompt: "p" } }),
      await limited.send("/query", { json: { prompt: "p" }, headers: { accept: "text/plain" } }),
      await limited.send("/query", { json: { prompt: 1 } }),
      await limited.send("/query", { json: { prompt: "p", model: "absent-1" } }),
      await limited.send("/query", { json: { prompt: "{{status/400}}" } }),
      await limited.send("/batch", { json: { prompts: ["p"] } }),
      await limited.send("/batch", { json: { prompts: [] } }),
      await limited.send("/batch", { json: { prompts: ["p"] }, headers: { accept: "text/event-stream" } }),
      await limited.send("/batch", { json: { nonsense: 1 } }),
      await limited.send("/runs"),
      await limited.send("/batch", { json: { prompts: ["p"] }, headers: { prefer: "respond-async" } }),
      await limited.send("/query", { json: { prompt: "p" }, headers: { "idempotency-key": "k" } }),
      await limited.send("/query", { json: { prompt: "p" }, headers: { "idempotency-key": "k" } }),
      await limited.send("/groups/absent"),
      await limited.send(`/runs/${limited.id}/log`),
      await limited.send(`/runs/${limited.id}/usage`),
    ];
    for (const { headers } of answers) {
      expect(headers.get("x-fanout-run")).toBe(limited.id);
      const left = Number(headers.get("x-fanout-budget-remaining-usd"));
      expect(left).toBeGreaterThan(0.4);
      expect(left).toBeLessThanOrEqual(0.5);
    }
  });

  it("has the exact remaining budget, and Infinity without a limit", async () => {
    const limited = await world.openRun({ budget: { usd: 0.1 }, default_model: "up-1" });
    const answer = await limited.send("/query", { json: { prompt: "p" } });
    const { usd } = (await documentOf(limited)).budget;
    expect(Number(answer.headers.get("x-fanout-budget-remaining-usd"))).toBe(usd.remaining);
    const free = await world.openRun();
    expect((await free.send("/run")).headers.get("x-fanout-budget-remaining-usd")).toBe("Infinity");
  });
});

describe("discovery", () => {
  it.each(["/", "/health", "/limits", "/openapi.json", "/llms.txt", "/stubs", "/stubs/python"])(
    "%s needs no credential",
    async (path) => {
      expect((await world.send(path)).status).toBe(200);
    },
  );

  it("lists the bounds that the gateway enforces", async () => {
    const bounds = z.record(z.string(), z.unknown()).parse((await world.send("/limits")).json);
    expect(bounds).toMatchObject({
      items_per_batch_max: 50_000,
      body_bytes_max: 32 * 1024 * 1024,
      parallel_max: 4_096,
    });
    const { prompt_bytes_max } = z.looseObject({ prompt_bytes_max: z.int() }).parse(bounds);
    const rich = await world.openRun({ default_model: "up-1" });
    const send = (bytes: number) => rich.send("/query", { json: { prompt: "x".repeat(bytes) } });
    expect(replyOf(await send(prompt_bytes_max)).text).toHaveLength(prompt_bytes_max);
    expect((await send(prompt_bytes_max + 1)).status).toBe(413);
  });

  it("links only to pages that exist", async () => {
    const { links } = z.looseObject({ links: z.record(z.string(), z.string()) }).parse((await world.send("/")).json);
    expect(Object.keys(links).length).toBeGreaterThan(3);
    for (const path of Object.values(links)) expect((await world.send(path)).status).toBe(200);
  });
});

describe("a gateway that is not configured", () => {
  it.each(PROTECTED)("without ADMIN_KEY refuses %s %s and names the secret to set", async (method, path) => {
    const answer = await closed.send(path, { method });
    expect([answer.status, errorOf(answer).code]).toEqual([503, "misconfigured"]);
    expect(errorOf(answer).message).toContain("ADMIN_KEY");
    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(Number(answer.headers.get("retry-after-ms"))).toBeGreaterThan(0);
  });

  it("still serves discovery", async () => {
    expect((await closed.send("/health")).status).toBe(200);
    expect((await closed.send("/openapi.json")).status).toBe(200);
  });

  let closed: World;
  beforeAll(async () => void (closed = await startWorld(undefined, { ADMIN_KEY: "" })));
  afterAll(() => closed.stop());

  it.each<[string, unknown, string]>([
    ["no kind", { a: {} }, "UPSTREAMS.a.kind"],
    ["a kind that does not exist", { a: { kind: "magic" } }, "UPSTREAMS.a.kind"],
    ["no base_url", { a: { kind: "openai" } }, "UPSTREAMS.a.base_url"],
    ["a base_url that is none", { a: { kind: "openai", base_url: "example" } }, "UPSTREAMS.a.base_url"],
    [
      "a secret that is not set",
      { a: { kind: "openai", base_url: "http://127.0.0.1:9/v1", api_key: "secret:NOT_SET" } },
      "UPSTREAMS.a.api_key",
    ],
    [
      "a price that is a text",
      { a: { kind: "simulated", prices: { "*": { input: "1", output: 1 } } } },
      "UPSTREAMS.a.prices.*.input",
    ],
    ["a misspelt field", { a: { kind: "simulated", model: ["x"] } }, "UPSTREAMS.a.model"],
    ["no upstream", {}, "UPSTREAMS"],
    ["text that is no JSON", '{"a":', "UPSTREAMS"],
  ])("because an upstream has %s reports it at the first request", async (_, UPSTREAMS, field) => {
    const broken = await startOwnGateway({ vars: { UPSTREAMS } });
    const answer = await answerOf(await broken.fetch("/runs", { token: broken.adminKey, json: {} }));
    expect([answer.status, errorOf(answer).code]).toEqual([500, "misconfigured"]);
    expect(errorOf(answer).message).toContain(field);
  });

  it("without a default model lists none, and refuses calls that name no model", async () => {
    const plain = await startOwnGateway({ vars: { DEFAULT_MODEL: "" } });
    const { token } = await plain.openRun();
    for (const [path, body] of [
      ["/query", { prompt: "p" }],
      ["/batch", { prompts: ["p"] }],
    ] as const) {
      const answer = await answerOf(await plain.fetch(path, { token, json: body }));
      expect([answer.status, errorOf(answer).param]).toEqual([400, "model"]);
    }
  });
});

/** The token with its claims replaced and its signature kept. */
function withOtherClaims(token: string): string {
  const [head, , signature] = token.split(".");
  const claims = Buffer.from(JSON.stringify({ sub: "run_other", depth: 0, exp: inAnHour() })).toString("base64url");
  return [head, claims, signature].join(".");
}
