/** The rules of the names that other systems call: credentials in a URL, fields, depth, statuses, keys, what stays hidden. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { endOf } from "./following.ts";
import { documentOf, errorOf, groupOf, replyOf, startWorld, type Answer, type RunAccess, type World } from "./world.ts";
import type { GatewayRequest } from "../support/gateway.ts";

let world: World;
let run: RunAccess;
beforeAll(async () => void (world = await startWorld()));
beforeEach(async () => {
  world.upstream.forget();
  run = await world.openRun({ default_model: "up-1", budget: { usd: 100 } });
});
afterAll(() => world.stop());

const SINGLES = ["/llm_query", "/rlm_query"];
const LISTS = ["/llm_query_batch", "/llm_query_batched", "/rlm_query_batched"];
const NAMES = [...SINGLES, ...LISTS];

/** A body that each route takes. */
const bodyFor = (path: string, prompt = "p") => {
  if (path.includes("/v1/rlm/tools")) return { tool_name: "llm_batch", args: [[prompt]] };
  return path.includes("_batch") ? { prompts: [prompt] } : { prompt };
};

const basic = (user: string, password: string) => ({
  authorization: `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`,
});

/** A dialect's error, which is a text and nothing else. */
function statusAndError(answer: Answer): [number, unknown] {
  expect(answer.json).toEqual({ error: expect.stringMatching(/./) });
  expect(answer.headers.get("x-request-id")).toMatch(/./);
  const { error } = answer.json as { error: unknown };
  return [answer.status, error];
}

describe("a batch of a dialect", () => {
  const widths: [path: string, width: number][] = [
    ["/llm_query_batch", 8],
    ["/llm_query_batched", 16],
    ["/rlm_query_batched", 16],
    ["/v1/rlm/tools", 5],
  ];

  it.each(widths)("has at %s as many calls in flight as the dialect's own server: %i", async (path, width) => {
    // The provider answers only when so many calls wait at once; the counter shows that there are never more.
    const prompts = Array.from({ length: 3 * width }, (_, index) => `{{barrier/${width}}} ${index}`);
    const json = path.includes("tools") ? { tool_name: "llm_batch", args: [prompts] } : { prompts };
    expect((await run.send(`/rollout/${run.id}${path}`, { json })).status).toBe(200);
    const { requests, peakInFlight } = world.upstream.counters;
    expect([requests, peakInFlight]).toEqual([3 * width, width]);
  });

  it("has as many as its request says", async () => {
    const prompts = Array.from({ length: 20 }, (_, index) => `{{barrier/20}} ${index}`);
    await run.send("/llm_query_batch", { json: { prompts, concurrency: 20 } });
    expect(world.upstream.counters.peakInFlight).toBe(20);
  });

  it("never has more than its run", async () => {
    const narrow = await world.openRun({ default_model: "up-1", max_parallel: 3 });
    const prompts = Array.from({ length: 9 }, (_, index) => `{{barrier/3}} ${index}`);
    await narrow.send("/llm_query_batched", { json: { prompts } });
    expect(world.upstream.counters.peakInFlight).toBe(3);
  });
});

describe("a run token", () => {
  it("is accepted as user or password wherever it is accepted as a bearer token", async () => {
    for (const headers of [basic("x", run.token), basic(run.token, ""), basic(run.token, "x"), basic("", run.token)]) {
      expect((await world.send("/run", { headers })).json).toMatchObject({ id: run.id });
    }
    const scheme = { authorization: basic("x", run.token).authorization.replace("Basic", "basic") };
    expect((await world.send("/run", { headers: scheme })).status).toBe(200);
    const headers = basic("x", run.token);
    expect(replyOf(await world.send("/query", { json: { prompt: "p" }, headers })).text).toBe("p");
    expect((await world.send("/v1/models", { headers })).status).toBe(200);
  });

  it("is accepted as a rollout id, without any header", async () => {
    for (const name of [...NAMES, "/v1/rlm/tools"]) {
      const answer = await world.send(`/rollout/${run.token}${name}`, { json: bodyFor(name) });
      expect([name, answer.status]).toEqual([name, 200]);
      expect(answer.headers.get("x-fanout-run")).toBe(run.id);
      expect(answer.headers.get("x-fanout-budget-remaining-usd")).toMatch(/^99\.9/);
    }
    // An empty credential counts as missing: some programs send the scheme without a secret.
    const headers = { authorization: "Bearer " };
    expect((await world.send(`/rollout/${run.token}/llm_query`, { json: { prompt: "p" }, headers })).status).toBe(200);
  });

  it("grants no access as part of any other path", async () => {
    for (const path of [`/runs/${run.token}`, `/${run.token}/run`, `/groups/${run.token}`, `/run?token=${run.token}`]) {
      expect([401, 404]).toContain((await world.send(path)).status);
    }
  });

  it.each<[string, (path: string) => GatewayRequest & { path: string }]>([
    ["is missing", (path) => ({ path: `/rollout/{id}${path}` })],
    ["is forged, in the path", (path) => ({ path: `/rollout/${run.token.slice(0, -3)}AAA${path}` })],
    ["is forged, before the host", (path) => ({ path, headers: basic("x", `${run.token.slice(0, -3)}AAA`) })],
    ["is a guess", (path) => ({ path, headers: basic("x", "guess") })],
    ["is no base64", (path) => ({ path, headers: { authorization: "Basic a" } })],
    ["is empty", (path) => ({ path, headers: basic("", "") })],
    ["is in a header that wins over the path", (path) => ({ path: `/rollout/${run.token}${path}`, token: "guess" })],
  ])("that %s returns 401 as text, and sends nothing upstream", async (_, requestOf) => {
    for (const name of NAMES) {
      const { path, ...request } = requestOf(name);
      const answer = await world.send(path, { json: bodyFor(name), ...request });
      expect([name, statusAndError(answer)[0]]).toEqual([name, 401]);
      expect(answer.headers.get("www-authenticate")).toBe("Bearer");
    }
    expect(world.upstream.counters.requests).toBe(0);
  });

  it("is in no reply and no log, even if it is part of a path", async () => {
    const signature = run.token.split(".")[2] ?? "";
    const paths = [
      `/rollout/${run.token}/llm_query`,
      `/rollout/${run.token}/nowhere`,
      `/rollout/${run.token}/rlm_query`,
    ];
    for (const path of paths) {
      for (const request of [{ json: { prompt: 1 } }, { method: "GET" }, { json: { prompt: "{{status/400}}" } }]) {
        const answer = await world.send(path, request);
        expect(answer.text).not.toContain(signature);
        expect([...answer.headers.values()].join("\n")).not.toContain(signature);
      }
    }
    const keyed = { json: { prompt: "kept" }, headers: { "idempotency-key": "hidden-1" } };
    await world.send(`/rollout/${run.token}/llm_query`, keyed);
    expect((await run.send(`/runs/${run.id}/log`)).text).not.toContain(signature);
    expect(world.gateway.output()).not.toContain(signature);
  });
});

describe("a rollout", () => {
  it("is the credential's run, named by its id or its token", async () => {
    for (const id of [run.id, run.token]) {
      const answer = await run.send(`/rollout/${id}/llm_query`, { json: { prompt: "p" } });
      expect(replyOf(answer).response).toBe("p");
    }
  });

  it("of another run is not found, whether that run exists or not", async () => {
    const other = await world.openRun();
    for (const id of ["elsewhere", other.id, other.token, "fo-run-abc", "%00", "..%2f"]) {
      for (const name of [...NAMES, "/v1/rlm/tools"]) {
        const answer = await run.send(`/rollout/${id}${name}`, { json: bodyFor(name) });
        expect([id, statusAndError(answer)]).toEqual([id, [404, "Rollout not found"]]);
      }
    }
    expect(world.upstream.counters.requests).toBe(0);
  });

  it("can be used by the operator if a header names the same run", async () => {
    const headers = { "x-fanout-run": run.id };
    const path = `/rollout/${run.id}/llm_query`;
    expect((await world.sendAsOperator(path, { json: { prompt: "p" }, headers })).status).toBe(200);
    expect((await world.sendAsOperator(path, { json: { prompt: "p" } })).status).toBe(400);
  });

  it("has no other routes, and returns their 404 as text", async () => {
    const path = `/rollout/${run.id}/nowhere`;
    const message = "POST /rollout/:id/nowhere not found; /docs lists the routes";
    expect(statusAndError(await run.send(path, { json: {} }))).toEqual([404, message]);
    const wrong = await run.send("/llm_query", { method: "GET" });
    expect([statusAndError(wrong)[0], wrong.headers.get("allow")]).toEqual([405, "POST"]);
  });

  it("of a run that has ended is refused", async () => {
    await run.send(`/runs/${run.id}/close`, { method: "POST" });
    for (const name of [...NAMES, "/v1/rlm/tools"]) {
      // An empty list needs no call, and is refused all the same.
      const short = name.includes("batch") ? { prompts: [] } : { prompt: "p" };
      for (const body of [bodyFor(name), { ...short, tool_name: "llm_batch", args: [[]] }]) {
        expect([name, statusAndError(await world.send(`/rollout/${run.token}${name}`, { json: body }))[0]]).toEqual([
          name,
          401,
        ]);
      }
    }
  });
});

describe("a body", () => {
  it.each<[string, unknown, string]>([
    ["is no object", ["p"], "body"],
    ["has no prompt", {}, "prompt"],
    ["has a prompt that is null", { prompt: null }, "prompt"],
    ["has a prompt that is a number", { prompt: 1 }, "prompt"],
    ["has a prompt that is an object", { prompt: { role: "user" } }, "prompt"],
    ["has a conversation without a role", { prompt: [{ content: "p" }] }, "prompt[0].role"],
    ["has an empty conversation", { prompt: [] }, "prompt"],
    ["has a conversation twice", { prompt: [{ role: "user" }], messages: [{ role: "user" }] }, "messages"],
    ["has half a character", { prompt: "\udfff" }, "prompt"],
    ["has a model that is a number", { prompt: "p", model: 7 }, "model"],
    ["has a depth that is a text", { prompt: "p", depth: "1" }, "depth"],
    ["has a depth between two", { prompt: "p", depth: 1.5 }, "depth"],
    ["has a cap of nothing", { prompt: "p", max_tokens: 0 }, "max_tokens"],
    ["has params that would spend more", { prompt: "p", params: { n: 2 } }, "params.n"],
  ])("of one call that %s returns a 400 that names the field", async (_, json, field) => {
    for (const path of [...SINGLES, `/rollout/${run.id}/llm_query`]) {
      const [status, message] = statusAndError(await run.send(path, { json }));
      expect([status, message]).toEqual([400, expect.stringContaining(field)]);
    }
    expect(world.upstream.counters.requests).toBe(0);
    expect((await documentOf(run)).stats.total_queries).toBe(0);
  });

  it.each<[string, unknown, string]>([
    ["is a text", "p", "body"],
    ["has no prompts", { depth: 1 }, "prompts"],
    ["has prompts that are null", { prompts: null }, "prompts"],
    ["has prompts that are one text", { prompts: "abc" }, "prompts"],
    ["has a prompt that is a number", { prompts: ["a", 1] }, "prompts[1]"],
    ["has a prompt that is null", { prompts: ["a", "b", null] }, "prompts[2]"],
    ["has a conversation with a wrong role", { prompts: ["a", [{ role: 1 }]] }, "prompts[1][0].role"],
    ["has a depth that is true", { prompts: ["a"], depth: true }, "depth"],
    ["has a width of nothing", { prompts: ["a"], concurrency: 0 }, "concurrency"],
    ["has 50,001 prompts", { prompts: Array.from({ length: 50_001 }, () => "a") }, "prompts"],
  ])("of a list that %s returns a 400 that names the field", async (_, json, field) => {
    for (const path of [...LISTS, `/rollout/${run.id}/llm_query_batched`]) {
      const [status, message] = statusAndError(await run.send(path, { json }));
      expect([status, message]).toEqual([400, expect.stringContaining(field)]);
    }
    expect(world.upstream.counters.requests).toBe(0);
    expect((await documentOf(run)).stats.total_queries).toBe(0);
  });

  it.each<[string, unknown, string]>([
    ["is a list", [], "body"],
    ["names no tool", { args: [] }, "Tool name not provided"],
    ["names a tool by a number", { tool_name: 1 }, "tool_name"],
    ["has arguments that are an object", { tool_name: "llm_batch", args: {} }, "args must be a JSON array"],
    ["has named arguments that are a list", { tool_name: "llm_batch", kwargs: [] }, "kwargs must be a JSON object"],
    ["has 50,001 prompts that are no texts", { tool_name: "llm_batch", args: [Array(50_001).fill(1)] }, "prompts"],
    ["has NUL in a text", { tool_name: "llm_batch", args: [[1, "a", "\0"]] }, "prompts[2]"],
  ])("of a tool call that %s returns a 400 that names the fault", async (_, json, message) => {
    const told = statusAndError(await run.send(`/rollout/${run.id}/v1/rlm/tools`, { json }));
    expect(told).toEqual([400, expect.stringContaining(message)]);
    expect(world.upstream.counters.requests).toBe(0);
  });

  it("that is not JSON returns 400, and one that is too large 413", async () => {
    for (const name of [...NAMES, `/rollout/${run.id}/v1/rlm/tools`]) {
      for (const body of ["", "{", '{"prompt": NaN}', "\xff"]) {
        expect(statusAndError(await run.send(name, { method: "POST", body }))[0]).toBe(400);
      }
      const large = await run.send(name, { json: bodyFor(name, "x".repeat(1_500_001)) });
      expect(statusAndError(large)).toEqual([413, expect.stringContaining("prompt")]);
    }
    expect(world.upstream.counters.requests).toBe(0);
  });

  it("may have no content type or a wrong one, because the original servers ignore it", async () => {
    for (const type of [undefined, "application/x-www-form-urlencoded", "text/plain"]) {
      const headers = type === undefined ? {} : { "content-type": type };
      const body = new TextEncoder().encode('{"prompt": "p"}');
      expect(replyOf(await run.send("/llm_query", { method: "POST", headers, body })).result).toBe("p");
    }
  });

  it("may have unused fields of the original clients, nulls, and the fields of /query and /batch", async () => {
    const extra = { depth: 3, session: { id: 1 }, temperature: null, max_tokens: null, agent: "a", __proto__: null };
    const one = await run.send("/llm_query", { json: { prompt: "abcdefgh", ...extra, model: "up-2", max_tokens: 1 } });
    expect(replyOf(one)).toMatchObject({ text: "abcd", model: "up-2", finish_reason: "length" });
    const list = await run.send("/llm_query_batched", {
      json: { prompts: ["a"], ...extra, system: "s", concurrency: 2 },
    });
    expect(groupOf(list)).toMatchObject({ results: ["a"], effective_parallel: 2 });
  });

  it("of a list may contain conversations, in a small and in a large body", { tags: ["slow"] }, async () => {
    const talk = (text: string) => [
      { role: "system", content: "s" },
      { role: "user", content: text },
    ];
    for (const count of [4, 700]) {
      const texts = Array.from({ length: count }, (_, index) => `${index} ${"x".repeat(2_000)}`);
      const json = {
        prompts: texts.map((text, index) => (index % 2 === 0 ? text : talk(text))),
        model: null,
        depth: 1,
      };
      expect(groupOf(await run.send("/llm_query_batched", { json })).responses).toEqual(texts);
    }
  });

  it("of 2 MB is scanned as it arrives, with null and unknown fields", { tags: ["slow"] }, async () => {
    const prompts = Array.from({ length: 1_000 }, (_, index) => `${index} ${"x".repeat(2_000)}`);
    const json = { model: null, depth: 1, other: [1], prompts };
    expect(groupOf(await run.send("/rlm_query_batched", { json })).responses).toEqual(prompts);
  });
});

describe("a recursive call", () => {
  it("is a plain one at any depth, below the run's limit, at it and past it", async () => {
    const flat = await world.openRun({ default_model: "up-1", max_depth: 0 });
    for (const access of [run, flat]) {
      for (const depth of [undefined, null, -1, 0, 1, 3, 99]) {
        const one = await access.send("/rlm_query", { json: { prompt: "p", depth } });
        expect(replyOf(one).response).toBe("p");
        const list = await access.send("/rlm_query_batched", { json: { prompts: ["a", "b"], depth } });
        expect(groupOf(list).responses).toEqual(["a", "b"]);
      }
    }
  });
});

describe("a failed call", () => {
  const FAILURES: [string, object, number, number][] = [
    ["the upstream refuses it", { prompt: "{{status/400}}" }, 502, 500],
    ["the upstream takes too long", { prompt: "{{delay/5000}}", timeout_ms: 50, on_lost: "fail" }, 504, 408],
    ["it waits too long", { prompt: "p", model: "up-slow", deadline_ms: 1 }, 504, 408],
    ["there is no such model", { prompt: "p", model: "nowhere/m" }, 404, 404],
    ["its model has no price", { prompt: "p", model: "free-1" }, 422, 422],
    ["its model is not allowed", { prompt: "p", model: "sim/echo" }, 403, 403],
  ];

  it.each(FAILURES)("because %s has rlm-sandbox's status, and 200 for rlm", async (what, json, native, status) => {
    const narrow = await world.openRun({ models: ["up/*", "free/*"], default_model: "up-1", max_parallel: 1 });
    const busy = what === "it waits too long" ? narrow.send("/query", { json: { prompt: "{{latch/busy}}" } }) : null;
    if (busy !== null) await expect.poll(() => world.upstream.counters.inFlight).toBe(1);
    const { message } = errorOf(await narrow.send("/query", { json }));
    const send = (path: string, body: object = json) => narrow.send(path, { json: body }).then(statusAndError);
    expect((await narrow.send("/query", { json })).status).toBe(native);
    expect(await send("/llm_query")).toEqual([status, message]);
    expect(await send("/llm_query", { ...json, depth: 1 })).toEqual([200, message]);
    expect(await send("/llm_query?errors=ok")).toEqual([200, message]);
    for (const path of ["/rlm_query", `/rollout/${narrow.id}/llm_query`, `/rollout/${narrow.id}/rlm_query`]) {
      expect(await send(path)).toEqual([200, message]);
      expect(await send(`${path}?errors=status`)).toEqual([status, message]);
    }
    if (busy !== null) world.upstream.open("busy");
    await busy;
  });

  it("for a spent budget is 402 for rlm-sandbox, and 200 for rlm", async () => {
    const poor = await world.openRun({ default_model: "up-1", budget: { usd: 0 } });
    const spent = expect.stringMatching(/^Budget exceeded: \$0\.00 spent, limit is \$0\.00/);
    expect(statusAndError(await poor.send("/llm_query", { json: { prompt: "p" } }))).toEqual([402, spent]);
    expect(statusAndError(await poor.send("/rlm_query", { json: { prompt: "p" } }))).toEqual([200, spent]);
    expect(world.upstream.counters.requests).toBe(0);
  });

  it("has the upstream's retry-after", async () => {
    const json = { prompt: "{{status/429/retry-after/120}}", model: world.modelAside() };
    const answer = await run.send("/llm_query", { json });
    expect([statusAndError(answer)[0], answer.headers.get("retry-after")]).toEqual([429, "120"]);
  });

  it("with errors=other returns 400", async () => {
    const answer = await run.send("/llm_query?errors=other", { json: { prompt: "p" } });
    expect(statusAndError(answer)).toEqual([400, "errors: expected status or ok"]);
    expect(world.upstream.counters.requests).toBe(0);
  });
});

describe("a list", () => {
  const prompts = ["a", "{{status/400}}", "c"];
  const refused = "up answered 400: the upstream was told to answer 400";

  it.each([
    ["/llm_query_batch", `[error] ${refused}`],
    ["/llm_query_batched", `Error: ${refused}`],
    ["/rlm_query_batched", `Error: ${refused}`],
  ])(
    "of %s has the error text at its index whatever the run's error style is, unless the request names one",
    async (path, text) => {
      const own = await world.openRun({ default_model: "up-1", error_style: "dspy" });
      for (const under of ["", `/rollout/${own.id}`]) {
        const group = groupOf(await own.send(under + path, { json: { prompts } }));
        expect(group).toMatchObject({ results: ["a", text, "c"], status: "partial" });
        expect(group.errors.map((error) => error?.code ?? null)).toEqual([null, "upstream_error", null]);
      }
      const named = await own.send(path, { json: { prompts, error_style: "verifiers" } });
      expect(groupOf(named).results[1]).toBe(`Error in sub-LLM call: ${refused}`);
    },
  );

  it("with error_style throw returns its first failure in the dialect's format", async () => {
    const json = { prompts, error_style: "throw" };
    expect(statusAndError(await run.send("/llm_query_batch", { json }))).toEqual([500, refused]);
    expect(statusAndError(await run.send("/llm_query_batched", { json }))).toEqual([200, refused]);
  });

  it("is a group of the run, readable and streamed like any other", async () => {
    const { id } = groupOf(await run.send("/llm_query_batched", { json: { prompts: ["a", "b"] } }));
    expect(groupOf(await run.send(`/groups/${id}`)).results).toEqual(["a", "b"]);
    const headers = { accept: "application/x-ndjson" };
    const lines = await run.send("/llm_query_batched", { json: { prompts: ["a"] }, headers });
    expect(lines.text.trim().split("\n")).toHaveLength(3);
    const left = await run.send("/llm_query_batch", { json: { prompts: ["a"] }, headers: { prefer: "respond-async" } });
    expect(left.status).toBe(202);
    expect(groupOf(await endOf(run, left.headers.get("location") ?? "")).results).toEqual(["a"]);
    expect((await documentOf(run)).stats).toMatchObject({
      total_queries: 4,
      total_parallel_queries: 2,
      parallel_batches: 1,
    });
  });
});

describe("an Idempotency-Key", () => {
  it("replays the answer, with any form of the credential", async () => {
    for (const name of [...NAMES, "/v1/rlm/tools"]) {
      world.upstream.forget();
      const asked = { json: bodyFor(name), headers: { "idempotency-key": `key of ${name}`.replaceAll(/[ /]/g, "-") } };
      const first = await world.send(`/rollout/${run.token}${name}`, asked);
      const again = await run.send(`/rollout/${run.id}${name}`, asked);
      expect([first.status, first.headers.get("idempotent-replayed")]).toEqual([200, null]);
      expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([200, "true"]);
      expect(again.text.trim()).toBe(first.text.trim());
      expect(world.upstream.counters.requests).toBe(1);
    }
  });

  it("that belongs to another request returns 409 as text", async () => {
    const send = (prompt: string) =>
      run.send("/rlm_query", { json: { prompt }, headers: { "idempotency-key": "one" } });
    expect((await send("a")).status).toBe(200);
    expect(statusAndError(await send("b"))).toEqual([409, expect.stringContaining("Idempotency-Key")]);
  });
});
