/** Routes: model names that stand for several targets. Two providers speak OpenAI's protocol and one Anthropic's. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { startByteUpstream, type ByteUpstream } from "../support/byte-upstream.ts";
import type { Gateway } from "../support/gateway.ts";
import { startGateway } from "../support/gateway.ts";
import { startUpstream, type TestUpstream, type UpstreamAnswer, type UpstreamCall } from "../support/upstream.ts";
import { answerOf, errorOf, groupOf, replyOf, type Answer } from "./world.ts";

let alpha: TestUpstream;
let beta: TestUpstream;
let gamma: ByteUpstream;
let gateway: Gateway;
/** What the provider `alpha` answers in the present test. */
let answers: (call: UpstreamCall) => UpstreamAnswer;

const MESSAGE = JSON.stringify({
  ...{ id: "msg_1", type: "message", role: "assistant", model: "claude-of-gamma", stop_reason: "end_turn" },
  ...{ stop_sequence: null, content: [{ type: "text", text: "from gamma" }] },
  usage: { input_tokens: 10, output_tokens: 5 },
});

const HEDGE = { after: 50, max_extra: 1 };

beforeAll(async () => {
  alpha = await startUpstream((call) => answers(call));
  beta = await startUpstream(() => ({ text: "from beta" }));
  gamma = await startByteUpstream();
  const at = (baseUrl: string, input: number) => ({
    ...{ kind: "openai", base_url: baseUrl, prices: { "*": { input, output: input } } },
    ...{ models: [], prompt_tokens_per_call: 0, max_attempts: 2 },
  });
  const UPSTREAMS = {
    alpha: at(alpha.baseUrl, 1),
    beta: at(beta.baseUrl, 10),
    gamma: { ...at(gamma.origin, 2), kind: "anthropic" },
    // Their gates have not seen what `alpha` has rejected.
    delta: at(alpha.baseUrl, 1),
    calm: at(alpha.baseUrl, 1),
    hedged: { ...at(alpha.baseUrl, 1), hedge: HEDGE },
  };
  const ROUTES = {
    fast: ["alpha/a", { model: "beta/b", on: ["rate_limited", "context_length"] }, "gamma/c"],
    mixed: ["gamma/c", "beta/b"],
    steady: ["calm/a", { model: "beta/b", on: ["rate_limited", "context_length"] }, "gamma/c"],
  };
  gateway = await startGateway({ vars: { UPSTREAMS, ROUTES, DEFAULT_MODEL: "fast" } });
});
beforeEach(() => {
  answers = () => ({ text: "from alpha" });
  for (const upstream of [alpha, beta]) upstream.forget();
  gamma.forget();
  gamma.serve((_, reply) => reply.whole(MESSAGE));
});
afterAll(async () => {
  await gateway.stop();
  await Promise.all([alpha.stop(), beta.stop(), gamma.stop()]);
});

async function openRun(body: Record<string, unknown> = {}) {
  const { id, token } = await gateway.openRun({ budget: { usd: 1 }, ...body });
  const send = async (path: string, json?: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
    answerOf(await gateway.fetch(path, { token, headers, ...(json === undefined ? {} : { json }) }));
  return { id, send };
}

const ended = z.looseObject({ event_type: z.literal("attempt_ended"), charged: z.object({ usd: z.number() }) });

describe("a call to a route", () => {
  it("is answered by the first target, whose name its answer has", async () => {
    const { send } = await openRun();
    expect(replyOf(await send("/query", { prompt: "a", model: "fast" }))).toMatchObject({
      ...{ text: "from alpha", upstream: "alpha", model: "a", attempts: 1 },
    });
    expect(replyOf(await send("/query", { prompt: "a", model: "alpha/a" }))).not.toHaveProperty("upstream");
  });

  it.each([
    ["a 429", { status: 429, retryAfterS: 1 }, "beta", "rate_limited"],
    ["a 503", { status: 503 }, "gamma", "upstream_error"],
    ["a key that is not accepted", { status: 401 }, "gamma", "stop"],
  ])("is answered by the next target that takes %s, across protocols, and the log says why", async (...row) => {
    const [, failure, upstream, fallback] = row;
    answers = () => failure;
    const { id, send } = await openRun();
    expect(replyOf(await send("/query", { prompt: "a" }))).toMatchObject({
      ...{ text: `from ${upstream}`, upstream, attempts: 2 },
    });
    const lines = (await send(`/runs/${id}/log`)).text.trim().split("\n");
    const events = lines.map((line): unknown => JSON.parse(line));
    expect(events).toContainEqual(
      expect.objectContaining({ event_type: "attempt_started", upstream: "alpha", route: "fast" }),
    );
    expect(events).toContainEqual(
      expect.objectContaining({ event_type: "attempt_started", upstream, route: "fast", fallback }),
    );
  });

  it("is charged at the price of the target that answered, and only there", async () => {
    answers = () => ({ status: 429, retryAfterS: 1 });
    const { id, send } = await openRun();
    const { usage } = replyOf(await send("/query", { prompt: "a" }));
    expect(usage.cost).toBeCloseTo((usage.total_tokens * 10) / 1e6, 9);
    const lines = (await send(`/runs/${id}/log`)).text.trim().split("\n");
    const charges = lines.flatMap((line) => ended.safeParse(JSON.parse(line)).data?.charged.usd ?? []);
    expect(charges).toEqual([0, usage.cost]);
  });

  it("that is refused as invalid ends where it is", async () => {
    answers = () => ({ status: 400 });
    const { send } = await openRun();
    const answer = await send("/query", { prompt: "a" });
    expect([answer.status, errorOf(answer).code]).toEqual([502, "upstream_error"]);
    expect([beta.counters.requests, gamma.calls.length]).toEqual([0, 0]);
  });

  it("continues with the other targets in a batch, slot by slot, and each item says who answered", async () => {
    answers = ({ prompt }) => (prompt.startsWith("bad") ? { status: 503 } : { text: "from alpha" });
    const { send } = await openRun({ max_parallel: 4 });
    const prompts = ["one", "bad two", "three", "bad four"];
    const group = groupOf(await send("/batch", { prompts, model: "steady" }));
    expect(group.results).toEqual(["from alpha", "from gamma", "from alpha", "from gamma"]);
    const stored = await send(`/groups/${group.id}/results`);
    const page = z.object({ data: z.array(z.looseObject({ upstream: z.string() })) }).parse(stored.json);
    expect(page.data.map(({ upstream }) => upstream)).toEqual(["calm", "gamma", "calm", "gamma"]);
  });

  it("ends with the last failure when every target has had its attempts", { tags: ["slow"] }, async () => {
    answers = () => ({ status: 503 });
    gamma.serve((_, reply) => reply.whole('{"error":{"type":"overloaded_error","message":"busy"}}', { status: 529 }));
    const { send } = await openRun();
    const answer = await send("/query", { prompt: "a" });
    expect([answer.status, errorOf(answer)["attempts"]]).toEqual([502, 4]);
    expect([alpha.counters.requests, beta.counters.requests, gamma.calls.length]).toEqual([2, 0, 2]);
  });
});

describe("a hedge", () => {
  /** Enough of them that what they cost covers the reservation of a second attempt. */
  const PROMPTS = [...Array.from({ length: 19 }, (_, index) => `on time ${index}`), "late"];
  /** The first attempt of the call that is late never ends. */
  const late = (): void => {
    let sends = 0;
    answers = ({ prompt }) => {
      if (prompt.includes("late")) sends += 1;
      return prompt.includes("late") && sends === 1 ? { fault: "hang" } : { text: `${prompt} answered` };
    };
  };
  const RESULTS = PROMPTS.map((prompt) => `${prompt} answered`);

  it("ends a late call of a batch, and the attempt that it overtakes is aborted and stays charged", async () => {
    late();
    const { id, send } = await openRun({ max_parallel: 4 });
    const group = groupOf(await send("/batch", { prompts: PROMPTS, model: "delta/a", max_tokens: 16, hedge: HEDGE }));
    expect(group.results).toEqual(RESULTS);
    const [item] = group.items.slice(-1);
    expect(item).toMatchObject({ status: "completed", attempts: 2 });
    const events = (await send(`/runs/${id}/log`)).text
      .trim()
      .split("\n")
      .map((line): unknown => JSON.parse(line));
    const of = { index: 19, upstream: "delta", model: "a" };
    expect(events).toContainEqual(
      expect.objectContaining({ event_type: "attempt_started", ...of, attempt: 2, hedge: true }),
    );
    expect(events).toContainEqual(
      expect.objectContaining({ event_type: "attempt_ended", ...of, attempt: 1, code: "cancelled", estimated: true }),
    );
    await expect.poll(() => alpha.counters.abandoned).toBeGreaterThanOrEqual(1);
    const { calls, usd } = z
      .object({ calls: z.object({ spent: z.number() }), usd: z.object({ spent: z.number(), reserved: z.number() }) })
      .parse((await send("/budget")).json);
    // On a busy machine, others may be late, too.
    expect(calls.spent).toBeGreaterThanOrEqual(21);
    expect(usd.reserved).toBe(0);
  });

  it("ends a late call of a group whose client does not wait, and of a graph", async () => {
    late();
    const { send } = await openRun({ max_parallel: 4 });
    const asked = { prompts: PROMPTS, model: "delta/a", max_tokens: 16, hedge: HEDGE };
    const accepted = await send("/batch", asked, { prefer: "respond-async" });
    const { id } = z.object({ id: z.string() }).parse(accepted.json);
    expect((await send(`/groups/${id}?wait_ms=20000`)).json).toMatchObject({ status: "completed" });
    late();
    const tasks = PROMPTS.map((prompt, index) => ({ id: `t${index}`, prompt }));
    const graph = await send("/dag", { tasks, model: "delta/a", max_tokens: 16, hedge: HEDGE });
    expect(graph.json).toMatchObject({ status: "completed" });
  });

  it("ends a late call of /query, within the part of what its run has spent", async () => {
    late();
    const { send } = await openRun({ max_parallel: 4 });
    const asked = { model: "delta/a", max_tokens: 16 };
    groupOf(await send("/batch", { prompts: PROMPTS.slice(0, -1), ...asked }));
    const answer = replyOf(await send("/query", { prompt: "late", ...asked, hedge: HEDGE }));
    expect(answer).toMatchObject({ text: "late answered", attempts: 2 });
  });

  it(
    "ends a late call of /query as its upstream is configured, unless the call says otherwise",
    { tags: ["slow"] },
    async () => {
      late();
      const { id, send } = await openRun({ max_parallel: 4 });
      const hedges = async (): Promise<number> => {
        const { text } = await send(`/runs/${id}/log`);
        return text.split("\n").filter((line) => line.includes('"hedge":true') && line.includes('"index":null')).length;
      };
      const asked = { model: "hedged/a", max_tokens: 16 };
      groupOf(await send("/batch", { prompts: PROMPTS.slice(0, -1), ...asked }));
      expect(replyOf(await send("/query", { prompt: "late", ...asked }))).toMatchObject({
        ...{ text: "late answered", attempts: 2 },
      });
      expect(await hedges()).toBe(1);
      late();
      const alone = { prompt: "late", ...asked, hedge: false, timeout_ms: 5_000 };
      expect(replyOf(await send("/query", alone))).toMatchObject({ text: "late answered", attempts: 2 });
      expect(await hedges()).toBe(1);
    },
  );

  it("is refused with a field that it does not have, or more than all", async () => {
    const { send } = await openRun();
    for (const hedge of [{ max_extra: 1.1 }, { after: 0 }, { delay: 5 }, true]) {
      expect(errorOf(await send("/batch", { prompts: ["a"], hedge })).param).toMatch(/^hedge/);
    }
  });
});

describe("a relayed body to a route", () => {
  it("goes to targets of its protocol only, as its client wrote it but for the model", async () => {
    const { send } = await openRun();
    const message = await send("/v1/messages", {
      model: "mixed",
      max_tokens: 5,
      messages: [{ role: "user", content: "a" }],
    });
    expect([message.status, message.headers.get("x-fanout-upstream")]).toEqual([200, "gamma"]);
    const chat = await send("/v1/chat/completions", { model: "mixed", messages: [{ role: "user", content: "a" }] });
    expect([chat.status, chat.headers.get("x-fanout-upstream")]).toEqual([200, "beta"]);
    expect([beta.counters.requests, gamma.calls.length]).toEqual([1, 1]);
  });

  it("falls back inside its protocol, and then returns the error of the last target", { tags: ["slow"] }, async () => {
    answers = () => ({ status: 429, retryAfterS: 1 });
    const { send } = await openRun();
    const body = { model: "fast", messages: [{ role: "user", content: "a" }] };
    const chat = await send("/v1/chat/completions", body);
    expect([chat.status, chat.headers.get("x-fanout-upstream")]).toEqual([200, "beta"]);
    answers = () => ({ status: 503 });
    const fresh = await openRun();
    // Its first target has a gate of its own: that of `fast` may be closed yet, and its calls then go to the next target.
    const failed = await fresh.send("/v1/chat/completions", { ...body, model: "steady" });
    expect([failed.status, gamma.calls.length]).toEqual([503, 0]);
  });
});

describe("a route is a model", () => {
  it("in the list of models, and by its name", async () => {
    const { send } = await openRun();
    const { data } = z
      .object({ data: z.array(z.looseObject({ id: z.string() })) })
      .parse((await send("/v1/models")).json);
    expect(data.map(({ id }) => id)).toEqual(expect.arrayContaining(["fast", "mixed"]));
    expect((await send("/v1/models/fast")).json).toMatchObject({ id: "fast", owned_by: "fanout" });
  });

  it("that a run may use if it lists it, and then no other model", async () => {
    const { send } = await openRun({ models: ["fast"], default_model: "fast" });
    expect(replyOf(await send("/query", { prompt: "a" })).text).toBe("from alpha");
    for (const model of ["alpha/a", "mixed"]) {
      expect(errorOf(await send("/query", { prompt: "a", model })).code).toBe("model_not_allowed");
    }
  });

  it("without the targets that a run may not use whose pattern matches its name", async () => {
    answers = () => ({ status: 503 });
    const { send } = await openRun({ models: ["f*", "alpha/*"] });
    const answer = await send("/query", { prompt: "a", model: "fast" });
    expect([answer.status, gamma.calls.length]).toEqual([502, 0]);
  });

  it("whose quote is that of its dearest target", async () => {
    const { send } = await openRun();
    const quoteOf = async (model: string) => {
      const answer = await send("/batch?quote=1", { prompts: ["a"], model, max_tokens: 100 });
      return z.object({ worst_usd: z.number() }).parse(answer.json).worst_usd;
    };
    expect(await quoteOf("fast")).toBe(await quoteOf("beta/b"));
  });
});
