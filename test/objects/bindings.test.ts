/** FanoutRun and FanoutOperator: the methods of a run over a binding, beside the same requests over HTTP. */
import { createExecutionContext } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { FanoutOperator } from "../../src/index.ts";
import { budgetDocument, openedRunDocument, runDocument } from "../../src/contract/runs.ts";
import { asOperator, batchAnswerOf, prompts, TestRun, upstreamStats } from "../support/objects-run.ts";
import { ADMIN_KEY } from "../support/object-vars.ts";

const CALLS = 1_000;
const SINGLE_CALLS = 40;

/** A run that is reached both ways. */
async function openBoth(settings: Record<string, unknown> = {}) {
  const opened = openedRunDocument().parse(await (await asOperator("POST", "/runs", settings)).json());
  const { id, token } = opened;
  return { id, token, http: new TestRun(id, token), bound: exports.FanoutRun({ props: { run: token } }) };
}

type Both = Awaited<ReturnType<typeof openBoth>>;

const wireError = z.looseObject({ message: z.string(), code: z.string(), status: z.number(), retryable: z.boolean() });

/** What a call throws over the binding. */
async function errorOf(called: () => Promise<unknown>): Promise<z.infer<typeof wireError>> {
  const error = await called().then(
    (answer) => new Error(`it has answered ${JSON.stringify(answer)}`),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof Error)) throw new Error("what was thrown is no Error");
  return wireError.parse({ ...error, message: error.message });
}

const logLine = z.looseObject({ event_type: z.string() });

/** The lines of a run's log without what differs between any two runs: times, and what carries the run's id. */
async function logOf({ http, id }: Both): Promise<string[]> {
  const text = await (await http.send("GET", `/runs/${id}/log`)).text();
  return text
    .trim()
    .split("\n")
    .map((line) => logLine.parse(JSON.parse(line)))
    .map(({ event_type: type, ...fields }) => `${type} ${JSON.stringify(fields, withoutTimes).replaceAll(id, "RUN")}`)
    .toSorted();
}

/** What depends on when something happened, or in which order: answers that came before teach what a call reserves. */
const TIMES =
  /^(seq|ts|.*_ms|.*_at|.*_us|speedup|peak_parallel|effective_parallel|request_id|call_id|parallel_group_id|timestamps|reserved)$/;

function withoutTimes(name: string, value: unknown): unknown {
  return TIMES.test(name) ? undefined : value;
}

describe("FanoutRun", () => {
  it("answers as the routes do, with the same ledger and the same log", { tags: ["slow"] }, async () => {
    const settings = { budget: { usd: 1 }, window_ms: 0 };
    const [overHttp, overBinding] = [await openBoth(settings), await openBoth(settings)];
    const batch = { prompts: prompts(CALLS - SINGLE_CALLS) };
    const singles = prompts(SINGLE_CALLS, "single");

    const httpBatch = await overHttp.http.batch(batch);
    const httpSingles = [];
    for (const prompt of singles) httpSingles.push((await overHttp.http.query({ prompt })).text);

    const boundBatch = batchAnswerOf(await overBinding.bound.batch(batch));
    const boundSingles = [];
    for (const prompt of singles) boundSingles.push(textOf(await overBinding.bound.query({ prompt })));

    expect(boundBatch.results).toEqual(httpBatch.results);
    expect(boundBatch.usage).toEqual(httpBatch.usage);
    expect(boundSingles).toEqual(httpSingles);
    const budget = budgetDocument().parse(await overBinding.bound.budget());
    expect(budget.calls.spent).toBe(CALLS);
    expect(budget).toEqual(budgetDocument().parse(await (await overHttp.http.send("GET", "/budget")).json()));
    expect(await logOf(overBinding)).toEqual(await logOf(overHttp));
  });

  it("streams slots as they end, as lines of JSON", async () => {
    const { bound } = await openBoth();
    const text = await new Response(await bound.stream({ prompts: prompts(3) })).text();
    const events = text
      .trim()
      .split("\n")
      .map((line) => z.looseObject({ type: z.string() }).parse(JSON.parse(line)));
    expect(events.map(({ type }) => type).toSorted()).toEqual([
      "group_completed",
      "group_started",
      "slot",
      "slot",
      "slot",
    ]);
  });

  it("makes a graph", async () => {
    const { bound } = await openBoth();
    const tasks = [
      { id: "a", prompt: "first" },
      { id: "b", prompt: "then {{a.output}}" },
    ];
    expect(await bound.dag({ tasks })).toMatchObject({ status: "completed" });
  });

  it("adds events to the log", async () => {
    const both = await openBoth();
    await both.bound.log({ event_type: "note", data: { text: "seen" } });
    expect((await logOf(both)).some((line) => line.startsWith("note "))).toBe(true);
  });

  it("opens a child run, whose token stays behind, and closes it", async () => {
    const parent = await openBoth({ budget: { calls: 10 } });
    const child = await parent.bound.child({ budget: { calls: 2 } });
    await child.query({ prompt: "a" });
    await child.query({ prompt: "b" });
    expect(await errorOf(() => child.query({ prompt: "c" }))).toMatchObject({ code: "budget_exhausted", status: 402 });
    expect(runDocument().parse(await child.close())).toMatchObject({ status: "closed", parent_id: parent.id });
    expect(budgetDocument().parse(await parent.bound.budget()).calls).toMatchObject({ spent: 2, remaining: 8 });
  });

  it("makes a call with an idempotency key once", async () => {
    const { bound } = await openBoth();
    const call = { prompt: "once", model: "up/echo/key/bound-once" };
    const first = textOf(await bound.query(call, { idempotency_key: "k" }));
    expect(textOf(await bound.query(call, { idempotency_key: "k" }))).toBe(first);
    expect(await upstreamStats("bound-once")).toMatchObject({ requests: 1 });
  });

  it("throws the error that the route answers with, and its status", async () => {
    const both = await openBoth({ budget: { usd: 0 } });
    const overHttp = await both.http.tryQuery({ prompt: "a" });
    const { status, remote: _, stack: __, ...error } = await errorOf(() => both.bound.query({ prompt: "a" }));
    expect(status).toBe(402);
    expect(error).toEqual(overHttp.error);
  });

  it.each([
    ["no object", "text"],
    ["an unknown field", { prompt: "a", run: "fo-run-other" }],
    ["a date", { prompt: new Date(0) }],
    ["a list of holes", Object.assign([], { length: 1_000_000_000 })],
  ])("refuses %s as a call, and spends nothing", async (_, call) => {
    const { bound } = await openBoth({ budget: { calls: 1 } });
    const error = await errorOf(() => bound.query(call));
    expect(["invalid_request", "payload_too_large"]).toContain(error.code);
    expect(budgetDocument().parse(await bound.budget()).calls.spent).toBe(0);
  });

  it.each([
    ["a header", { idempotency_key: "a\r\nx-fanout-run: other" }],
    ["another option", { authorization: `Bearer ${ADMIN_KEY}` }],
    ["no object", "k"],
    ["null", null],
  ])("refuses %s as an option", async (_, options) => {
    const { bound } = await openBoth();
    expect(await errorOf(() => bound.query({ prompt: "a" }, options))).toMatchObject({ code: "invalid_request" });
  });

  it.each([
    ["without props", undefined],
    ["without a run", {}],
    ["with the operator's key", { run: ADMIN_KEY }],
    ["with a token of nobody", { run: "fo-run-a.b.c" }],
    ["with an object", { run: { token: "fo-run-a.b.c" } }],
  ])("refuses every call of a binding %s", async (_, props) => {
    const bound = exports.FanoutRun(props === undefined ? {} : { props });
    expect(await errorOf(() => bound.budget())).toMatchObject({ code: "invalid_api_key", status: 401 });
  });
});

/** The operator's entrypoint in a gateway that allows it. */
function allowed(): FanoutOperator {
  return new FanoutOperator(createExecutionContext(), { ...env, SERVICE_BINDINGS: "1" });
}

describe("FanoutOperator", () => {
  it("opens a run, and returns its token for the operator and its binding for the code", async () => {
    const { id, token, binding } = await allowed().openRun({ budget: { calls: 1 }, name: "bound" });
    expect(await new TestRun(id, token).document()).toMatchObject({ id, name: "bound" });
    await binding.query({ prompt: "a" });
    expect(await errorOf(() => binding.query({ prompt: "b" }))).toMatchObject({ code: "budget_exhausted" });
  });

  it("binds a run whose token the operator has kept", async () => {
    const { token } = await openBoth({ budget: { calls: 7 } });
    expect(budgetDocument().parse(await allowed().bind(token).budget()).calls.limit).toBe(7);
  });

  it("throws what POST /runs answers where it opens none", async () => {
    expect(await errorOf(() => allowed().openRun({ budget: 5 }))).toMatchObject({
      code: "invalid_request",
      status: 400,
    });
  });

  it("is off unless SERVICE_BINDINGS is 1", async () => {
    const { FanoutOperator: operator } = exports;
    const off = { code: "forbidden", status: 403, message: expect.stringContaining("SERVICE_BINDINGS=1") };
    expect(await errorOf(async () => operator.openRun({}))).toMatchObject(off);
    expect(await errorOf(async () => operator.bind("fo-run-a.b.c"))).toMatchObject(off);
  });
});

function textOf(answer: unknown): string {
  return z.looseObject({ text: z.string() }).parse(answer).text;
}
