/** Runs: opening one, its document, and the operator's list. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { startGateway, type Gateway } from "../support/gateway.ts";
import { answerOf, documentOf, errorOf, startWorld, type World } from "./world.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
afterAll(() => world.stop());

const unlimited = { limit: null, spent: 0, reserved: 0, remaining: null };

describe("POST /runs", () => {
  it("requires no field: the default run is active, has max_parallel 64, lasts a day and has no limits", async () => {
    const answer = await world.sendAsOperator("/runs", { json: {} });
    expect(answer.status).toBe(201);
    expect(answer.json).toEqual({
      id: expect.stringMatching(/^run_[0-9a-f]{64}$/),
      object: "run",
      name: null,
      status: "active",
      parent_id: null,
      depth: 0,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      expires_at: expect.any(String),
      budget: {
        usd: unlimited,
        calls: unlimited,
        prompt_tokens: unlimited,
        completion_tokens: unlimited,
        new_tokens: unlimited,
      },
      max_parallel: 64,
      effective_parallel: 64,
      weight: 1,
      blocked: null,
      stats: {
        total_queries: 0,
        parallel_batches: 0,
        sequential_queries: 0,
        total_parallel_queries: 0,
        pending_queries: 0,
      },
      metrics: {
        wall_ms: 0,
        sequential_ms: 0,
        speedup: null,
        peak_parallel: 0,
        success_rate: null,
        latency_ms: null,
        queued_ms: null,
        attempts: 0,
        retries: 0,
        failures: {},
      },
      last_call_at: null,
      in_flight: 0,
      own_spent_usd: 0,
      children: { open: 0, opened: 0 },
      region: null,
      replay: null,
      replay_from: null,
      webhook: null,
      tools: [],
      metadata: {},
      token: expect.stringMatching(/^fo-run-/),
    });
    const { created_at, expires_at } = z
      .looseObject({ created_at: z.string(), expires_at: z.string() })
      .parse(answer.json);
    expect(Date.parse(expires_at) - Date.parse(created_at)).toBe(86_400_000);
  });

  it("stores its settings, and returns the token only once", async () => {
    const asked = {
      name: "a name, naïve 🦉",
      budget: { usd: 0.07, calls: 3, prompt_tokens: 5, completion_tokens: 0, new_tokens: 5 },
      max_parallel: 0,
      expires_in_s: 60,
      region: "apac-ne",
      weight: 2.5,
      metadata: { deep: [1, { a: "\ud83e\udd89" }] },
    };
    const run = await world.openRun(asked);
    const shown = (await run.send("/run")).json;
    expect(shown).toMatchObject({
      name: asked.name,
      budget: {
        usd: { limit: 0.07, remaining: 0.07 },
        calls: { limit: 3 },
        prompt_tokens: { limit: 5 },
        completion_tokens: { limit: 0, remaining: 0 },
      },
      max_parallel: 0,
      effective_parallel: 512,
      region: "apac-ne",
      weight: 2.5,
      metadata: asked.metadata,
    });
    expect(shown).not.toHaveProperty("token");
    expect((await world.sendAsOperator(`/runs/${run.id}`)).json).toEqual(shown);
  });

  it("refuses a region that there is none of", async () => {
    for (const region of ["europe", "", 7, null]) {
      const answer = await world.sendAsOperator("/runs", { json: { region } });
      expect(answer.status).toBe(400);
      expect(answer.json).toMatchObject({ error: { code: "invalid_request", param: "region" } });
    }
  });

  it("has max_parallel 4 with the profile stable, if the request names none", async () => {
    const stable = await world.openRun({ profile: "stable" });
    expect((await stable.send("/run")).json).toMatchObject({ max_parallel: 4, effective_parallel: 4 });
    const wide = await world.openRun({ profile: "stable", max_parallel: 20 });
    expect((await wide.send("/run")).json).toMatchObject({ max_parallel: 20 });
    const unknown = await world.sendAsOperator("/runs", { json: { profile: "fast" } });
    expect(unknown).toMatchObject({ status: 400, json: { error: { code: "invalid_request", param: "profile" } } });
  });

  it("gives each run its own budget", async () => {
    const [rich, poor] = [await world.openRun({ budget: { calls: 5 } }), await world.openRun({ budget: { calls: 1 } })];
    for (let at = 0; at < 3; at += 1) await rich.send("/query", { json: { prompt: "p" } });
    expect((await documentOf(rich)).budget.calls.spent).toBe(3);
    expect((await documentOf(poor)).budget.calls.spent).toBe(0);
  });
});

const page = z.strictObject({
  object: z.literal("list"),
  data: z.array(z.looseObject({ id: z.string() })),
  has_more: z.boolean(),
  next_cursor: z.string().nullable(),
  unread: z.array(z.never()),
  missing_parts: z.literal(0),
});

describe("GET /runs", () => {
  let gateway: Gateway;
  const opened: string[] = [];
  const list = async (query: string) => {
    const answer = await answerOf(await gateway.fetch(`/runs${query}`, { token: gateway.adminKey }));
    return page.parse(answer.json);
  };
  const idsOf = ({ data }: z.infer<typeof page>) => data.map(({ id }) => id);

  beforeAll(async () => void (gateway = await startGateway()));
  afterAll(() => gateway.stop());

  it("of a new gateway is an empty page", async () => {
    expect(await list("")).toEqual({
      object: "list",
      data: [],
      has_more: false,
      next_cursor: null,
      unread: [],
      missing_parts: 0,
    });
  });

  it("pages through all runs, newest first, each once", async () => {
    for (let at = 0; at < 7; at += 1) opened.unshift((await gateway.openRun({ name: `${at}` })).id);
    expect(idsOf(await list(""))).toEqual(opened);
    const pages: string[][] = [];
    for (let cursor: string | null = ""; cursor !== null;) {
      const next: z.infer<typeof page> = await list(`?limit=3${cursor === "" ? "" : `&cursor=${cursor}`}`);
      pages.push(idsOf(next));
      expect(next.has_more).toBe(next.next_cursor !== null);
      cursor = next.next_cursor;
    }
    expect(pages).toEqual([opened.slice(0, 3), opened.slice(3, 6), opened.slice(6)]);
  });

  it("reports no further page if a page ends with the last run", async () => {
    expect(await list("?limit=7")).toMatchObject({ has_more: false, next_cursor: null });
  });

  it("continues from a cursor, whatever runs are opened meanwhile", async () => {
    const first = await list("?limit=3");
    await gateway.openRun({ name: "later" });
    expect(idsOf(await list(`?limit=100&cursor=${first.next_cursor}`))).toEqual(opened.slice(3));
  });

  it("refuses a cursor that it did not issue", async () => {
    const answer = await answerOf(await gateway.fetch("/runs?cursor=run_x", { token: gateway.adminKey }));
    expect([answer.status, errorOf(answer).param]).toEqual([400, "cursor"]);
  });
});
