/** The operator's rules for root runs: a default and a maximum budget, and a root budget per UTC day. */
import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import worker, { DirectoryObject, RunObject } from "../../src/index.ts";
import { directoriesOf, directoryOf } from "../../src/objects/address.ts";
import { runsBefore } from "../../src/objects/clients/directory.ts";
import { ADMIN_KEY } from "../support/object-vars.ts";
import { skipTime } from "../support/objects-clock.ts";
import { evict } from "../support/objects-direct.ts";
import { openedBy, openRun, prompts, type TestRun } from "../support/objects-run.ts";
import { begin, holdsNothing, priceOf, refusalOf, ringUntil, spend } from "../support/objects-tree.ts";

type Rules = { DEFAULT_BUDGET_USD?: number; MAX_BUDGET_USD?: string; ROOT_BUDGET_USD_PER_DAY?: number };

/** Sends a request to a gateway with these rules, as its operator. */
async function send(rules: Rules, method: string, path: string, body?: unknown): Promise<Response> {
  const context = createExecutionContext();
  const request = new Request(`http://fanout.test${path}`, {
    method,
    headers: { authorization: `Bearer ${ADMIN_KEY}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const response = await worker.fetch(request, { ...env, ...rules }, context);
  await waitOnExecutionContext(context);
  return response;
}

const open = async (rules: Rules, usd?: number): Promise<TestRun> =>
  openedBy(await send(rules, "POST", "/runs", usd === undefined ? {} : { budget: { usd } }));
const refused = async (rules: Rules, usd?: number) =>
  refusalOf(await send(rules, "POST", "/runs", usd === undefined ? {} : { budget: { usd } }));
const close = (run: TestRun) => send({}, "POST", `/runs/${run.id}/close`, {});
const limitOf = async (run: TestRun) => (await run.object.budget())?.usd.limit;

const DAY_MS = 86_400_000;
const today = () => new Date(Date.now()).toISOString().slice(0, 10);

describe("a default budget", () => {
  it("applies to a run that names no budget, and to no other", async () => {
    const rules = { DEFAULT_BUDGET_USD: 0.25 };
    expect(await limitOf(await open(rules))).toBe(0.25);
    expect(await limitOf(await open(rules, 7))).toBe(7);
    expect(await limitOf(await open({}))).toBeNull();
  });
});

describe("a maximum budget", () => {
  const rules = { MAX_BUDGET_USD: "2" };

  it("allows a budget equal to it, and refuses more with the field's name", async () => {
    expect(await limitOf(await open(rules, 2))).toBe(2);
    expect(await refused(rules, 2.000000001)).toMatchObject({
      status: 400,
      code: "invalid_request",
      param: "budget.usd",
      message: expect.stringContaining("MAX_BUDGET_USD"),
    });
  });

  it("is the budget of a run that names none, if there is no default", async () => {
    expect(await limitOf(await open(rules))).toBe(2);
    expect(await limitOf(await open({ ...rules, DEFAULT_BUDGET_USD: 1 }))).toBe(1);
  });

  it("applies to a run's new limit too, and not to unchanged limits", async () => {
    const rich = await open({}, 5);
    expect((await send(rules, "PATCH", `/runs/${rich.id}`, { budget: { usd: 3 } })).status).toBe(400);
    expect((await send(rules, "PATCH", `/runs/${rich.id}`, { paused: true })).status).toBe(200);
    expect((await send(rules, "PATCH", `/runs/${rich.id}`, { budget: { calls: 9 } })).status).toBe(200);
    expect(await limitOf(rich)).toBe(5);
    const open_ended = await open({});
    await send(rules, "PATCH", `/runs/${open_ended.id}`, { paused: true });
    expect(await limitOf(open_ended)).toBeNull();
  });
});

describe("a root budget per day", () => {
  // Each test has a day of its own.
  beforeEach(() => skipTime(DAY_MS));
  const rules = { ROOT_BUDGET_USD_PER_DAY: 1 };

  it("is shared by the runs of the day, immediately and in full", async () => {
    await open(rules, 0.6);
    expect(await refused(rules, 0.5)).toMatchObject({
      status: 402,
      code: "budget_exhausted",
      param: "budget.usd",
      limit: 1,
      reserved: 0.6,
      remaining: 0.4,
      message: expect.stringMatching(/0\.60 is reserved.*the limit is ROOT_BUDGET_USD_PER_DAY$/),
      variable: "ROOT_BUDGET_USD_PER_DAY",
    });
    await open(rules, 0.4);
    expect((await refused(rules, 0.000000001)).status).toBe(402);
    await open(rules, 0);
  });

  it("is never oversold by runs that are opened concurrently", async () => {
    const answers = await Promise.all(prompts(30).map(() => send(rules, "POST", "/runs", { budget: { usd: 0.07 } })));
    expect(answers.filter(({ status }) => status === 201).length).toBe(14);
  });

  it("gets back what a run did not spend when it ends, once", async () => {
    const run = await open(rules, 1);
    await spend(run, 50, 20);
    await close(run);
    await close(run);
    const left = 1 - priceOf(50, 20) / 1e9;
    expect((await refused(rules, left + 1e-9)).status).toBe(402);
    await open(rules, left);
  });

  it("gets all of it back if the run could not be opened, which is then not listed", async () => {
    const failing = vi.spyOn(RunObject.prototype, "open").mockImplementation(() => {
      throw new Error("the test keeps the run out of reach");
    });
    expect((await send(rules, "POST", "/runs", { budget: { usd: 1 } })).status).toBe(500);
    failing.mockRestore();
    const rows = async () => (await runsBefore(env, null, 1_000)).runs;
    const before = (await rows()).length;
    await open(rules, 1);
    expect(await rows()).toHaveLength(before + 1);
  });

  it("counts of a run that reports more than its reservation only what upstreams have billed above that", async () => {
    const [plain, billed] = [await open(rules, 0.2), await open(rules, 0.2)];
    const partOf = ({ id }: TestRun) => directoryOf(env, { id, holder: "part" });
    await partOf(plain).childEnded(plain.id, 1e15, 0);
    await partOf(billed).childEnded(billed.id, 1e15, 0.1e9);
    expect((await refused(rules, 0.500000001)).status).toBe(402);
    await open(rules, 0.5);
  });

  it("requires every run to have a limit, its own or the default", async () => {
    expect(await refused(rules)).toMatchObject({ status: 400, param: "budget.usd" });
    expect(await limitOf(await open({ ...rules, DEFAULT_BUDGET_USD: 0.5 }))).toBe(0.5);
  });

  it("is full on the next day, whatever yesterday's runs still reserve", async () => {
    const yesterday = await open(rules, 1);
    expect((await refused(rules, 0.1)).status).toBe(402);
    skipTime(DAY_MS);
    const today = await open(rules, 1);
    await ringUntil([yesterday], () => holdsNothing(yesterday));
    expect((await refused(rules, 0.1)).status).toBe(402);
    await close(today);
    await open(rules, 1);
  });

  it("follows a run's new limits: a raise if enough is left, a reduction at once", async () => {
    const run = await open(rules, 0.5);
    const other = await open(rules, 0.25);
    const patch = (usd: number) => send(rules, "PATCH", `/runs/${run.id}`, { budget: { usd } });
    expect(await refusalOf(await patch(0.76))).toMatchObject({
      status: 402,
      param: "budget.usd",
      message: expect.stringMatching(/0\.75 is reserved.*the limit is ROOT_BUDGET_USD_PER_DAY$/),
    });
    expect(await limitOf(run)).toBe(0.5);
    expect((await patch(0.75)).status).toBe(200);
    expect((await patch(0.1)).status).toBe(200);
    await close(other);
    await open(rules, 0.9);
    expect((await refused(rules, 0.000000001)).status).toBe(402);
  });

  it("does not apply to a run that was opened before it was configured", async () => {
    const run = await open({}, 5);
    expect((await send(rules, "PATCH", `/runs/${run.id}`, { budget: { usd: 7 } })).status).toBe(200);
    expect(await limitOf(run)).toBe(7);
    await close(run);
    await open(rules, 1);
  });

  it("survives a restart of the directory of runs", async () => {
    const run = await open(rules, 0.75);
    await begin(run, 10);
    for (const part of directoriesOf(env)) await evict(env.DIRECTORY.get(part().id));
    expect((await refused(rules, 0.26)).status).toBe(402);
    await run.object.end("cancelled");
    await ringUntil([run], async () => (await send(rules, "POST", "/runs", { budget: { usd: 0.99 } })).status === 201);
  });

  it("is leased to a part of the list for many runs at a time", async () => {
    const asked = vi.spyOn(DirectoryObject.prototype, "lease");
    const part = env.DIRECTORY.getByName("runs/7");
    const reservation = { day: today(), nanoUsd: 1e6, limitNanoUsd: 1e12 };
    const add = (at: number) =>
      part.addOfDay({ id: `run_of_part_${at}`, openedAt: at }, reservation, { text: "{}", atMs: Date.now() });
    expect(await Promise.all(prompts(30).map((_, at) => add(at)))).toEqual(prompts(30).map(() => ({ ok: true })));
    // Those that arrive while the first waits share its request, or the next one.
    expect(asked.mock.calls.length).toBeLessThanOrEqual(2);
    asked.mockClear();
    for (let at = 30; at < 60; at++) expect(await add(at)).toEqual({ ok: true });
    expect(asked).not.toHaveBeenCalled();
    // A request that is repeated reserves nothing twice: 60 runs are open, and the rest of the part's lease goes back with this.
    expect(await add(0)).toEqual({ ok: true });
    const { no } = await part.release(today(), 0);
    expect(await part.release(today(), 0)).toEqual({ no, nanoUsd: 60e6 });
    asked.mockRestore();
    for (let at = 0; at < 60; at++) await part.forget(`run_of_part_${at}`);
  });

  it("opens a run whose request is repeated while the first one waits for a lease, though it is covered once only", async () => {
    const part = env.DIRECTORY.getByName("runs/8");
    const reservation = { day: today(), nanoUsd: 0.6e9, limitNanoUsd: 1e9 };
    const add = () => part.addOfDay({ id: "run_twice", openedAt: 1 }, reservation, { text: "{}", atMs: Date.now() });
    expect(await Promise.all([add(), add()])).toEqual([{ ok: true }, { ok: true }]);
    expect((await refused(rules, 0.400000001)).status).toBe(402);
    await open(rules, 0.4);
    await part.forget("run_twice");
  });

  it("has what runs of an earlier version reserve in the one object that held it", async () => {
    const whole = env.DIRECTORY.getByName("runs");
    const reservation = { day: today(), nanoUsd: 0.6e9, limitNanoUsd: 1e9 };
    expect(await whole.add({ id: "run_before", openedAt: 1 }, reservation)).toMatchObject({ ok: true });
    expect((await refused(rules, 0.400000001)).status).toBe(402);
    const run = await open(rules, 0.4);
    expect(await whole.resizeChild("run_before", 0.600000001e9, 1e9)).toMatchObject({
      ok: false,
      committedNanoUsd: 1e9,
    });
    await close(run);
    await whole.childEnded("run_before", 0, 0);
    await open(rules, 1);
    await whole.forget("run_before");
  });

  it("lists its runs like any other", async () => {
    const run = await open(rules, 0.5);
    const plain = await openRun();
    const list = z.object({ data: z.array(z.looseObject({ id: z.string() })) });
    const newest = list.parse(await (await send(rules, "GET", "/runs?limit=2")).json());
    expect(newest.data.map(({ id }) => id)).toEqual([plain.id, run.id]);
  });
});
