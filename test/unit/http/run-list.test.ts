/** `GET /runs` where some of its runs cannot be read: the others are shown, and of these it says why they are not. */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { createApp } from "../../../src/http/app.ts";
import { runList } from "../../../src/contract/runs.ts";
import { DIRECTORY_SHARDS, LIST_OPENING_MS } from "../../../src/limits.ts";
import type { ListedRun } from "../../../src/objects/methods/directory-api.ts";

// Delays between retries are over at once; a row never waits for its whole time.
const wait = (_ms: number, more?: { signal: AbortSignal }) =>
  more === undefined ? Promise.resolve() : new Promise(() => {});
beforeAll(() => {
  vi.stubGlobal("scheduler", { wait });
  // What cannot be read is logged.
  vi.spyOn(console, "error").mockImplementation(() => {});
});
afterAll(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

const ADMIN_KEY = "the admin key of these tests, long enough";
const NOW_MS = Date.now();
const amounts = { limit: null, spent: 0, reserved: 0, remaining: null };
const idOf = (n: number): string => `run_${n.toString(16).padStart(64, "0")}`;

function documentOf(id: string) {
  const budget = {
    usd: amounts,
    calls: amounts,
    prompt_tokens: amounts,
    completion_tokens: amounts,
    new_tokens: amounts,
  };
  const stats = {
    total_queries: 0,
    parallel_batches: 0,
    sequential_queries: 0,
    total_parallel_queries: 0,
    pending_queries: 0,
  };
  const metrics = {
    wall_ms: 0,
    sequential_ms: 0,
    speedup: null,
    peak_parallel: 0,
    success_rate: null,
    attempts: 0,
    retries: 0,
  };
  const noTimes = { latency_ms: null, queued_ms: null };
  const times = { created_at: new Date(NOW_MS).toISOString(), expires_at: new Date(NOW_MS).toISOString() };
  const rest = {
    depth: 0,
    max_parallel: 1,
    effective_parallel: 1,
    weight: 1,
    region: null,
    replay: null,
    replay_from: null,
  };
  const settings = { name: null, status: "active", parent_id: null, tools: [], metadataJson: "{}", ...rest };
  return { id, object: "run", ...settings, ...times, budget, stats, metrics: { ...metrics, ...noTimes } };
}

type Place = { runs: ListedRun[]; document: (id: string) => unknown; part?: (name: string) => void };

/** The application on objects of which the test decides what they reply. */
function place({ runs, document, part = () => {} }: Place) {
  const forgotten = new Set<string>();
  const listed = (name: string) => name === "runs/0";
  const DIRECTORY = {
    getByName: (name: string) => ({
      newest: async (before: ListedRun | null, limit: number) => {
        part(name);
        const behind = runs.filter(
          ({ id, openedAt }) => !forgotten.has(id) && openedAt < (before?.openedAt ?? Infinity),
        );
        return listed(name) ? behind.toSorted((a, b) => b.openedAt - a.openedAt).slice(0, limit) : [];
      },
      forget: async (id: string) => void forgotten.add(id),
    }),
  };
  const object = (id: string) => ({ document: async () => document(id) });
  const RUN = { get: object, idFromString: (text: string) => `run_${text}`, idFromName: (name: string) => name };
  const env = { ADMIN_KEY, UPSTREAMS: { sim: { kind: "simulated" } }, RUN, DIRECTORY };
  const app = createApp({ now: Date.now, newRequestId: () => "id", log: () => {}, random: () => 0 });
  const kept: Promise<unknown>[] = [];
  const context = {
    waitUntil: (promise: Promise<unknown>) => void kept.push(promise),
    passThroughOnException: () => {},
  };
  return async (query: string) => {
    const headers = { authorization: `Bearer ${ADMIN_KEY}` };
    const answer = await app.request(`/runs?${query}`, { headers }, env, { ...context, props: {} } as never);
    const json: unknown = await answer.json();
    await Promise.all(kept);
    return { status: answer.status, json };
  };
}

const HUNDRED = Array.from({ length: 100 }, (_, n) => ({
  id: idOf(n),
  openedAt: (NOW_MS - LIST_OPENING_MS * 2 + n) * 1_000,
}));
const [UNREADABLE, OVERLOADED, DELETED] = [idOf(7), idOf(50), idOf(99)];

function reply(id: string): unknown {
  if (id === UNREADABLE) throw Object.assign(new Error("a row is broken"), { remote: true });
  if (id === OVERLOADED) throw Object.assign(new Error("too many requests"), { overloaded: true });
  return id === DELETED ? null : documentOf(id);
}

describe("a list with one unreadable, one overloaded and one deleted run among 100", () => {
  it("shows the other 97, and of each of the three why it is not shown", async () => {
    const { status, json } = await place({ runs: HUNDRED, document: reply })("limit=100");
    expect(status).toBe(200);
    const { data, unread, has_more } = runList().parse(json);
    console.log(`rows: ${data.length}, reasons: ${unread.map(({ code }) => code).join(", ")}`);
    expect([data.length, has_more]).toEqual([97, false]);
    expect(unread.map(({ id, code, retryable }) => [id, code, retryable])).toEqual([
      [DELETED, "deleted", false],
      [OVERLOADED, "overloaded", true],
      [UNREADABLE, "unreadable", false],
    ]);
    expect(unread.every(({ message, created_at }) => message.length > 20 && created_at !== null)).toBe(true);
    expect(JSON.stringify(unread)).not.toContain("a row is broken");
  });

  it("says what to do about one whose rows later code has written", async () => {
    const document = (id: string): unknown => {
      if (id === UNREADABLE) throw new Error("storage has schema 99, this code knows 9");
      return reply(id);
    };
    const { json } = await place({ runs: HUNDRED, document })("limit=100");
    const { unread } = runList().parse(json);
    expect(unread.at(-1)).toMatchObject({ id: UNREADABLE, code: "newer_storage", retryable: false });
    expect(unread.at(-1)?.message).toContain("deploy");
  });

  it("has 99 of them from then on: what was deleted is off the list", async () => {
    const send = place({ runs: HUNDRED, document: reply });
    await send("limit=100");
    const { data, unread } = runList().parse((await send("limit=100")).json);
    expect([data.length, unread.map(({ code }) => code)]).toEqual([97, ["overloaded", "unreadable"]]);
  });

  it("shows them to a filter too, for they may fit it", async () => {
    const { json } = await place({ runs: HUNDRED, document: reply })("status=closed");
    const { data, unread } = runList().parse(json);
    expect([data.length, unread.length]).toEqual([0, 3]);
  });

  it("by page shows each run once, readable or not", async () => {
    const send = place({ runs: HUNDRED, document: reply });
    const seen: string[] = [];
    for (let query: string | null = "limit=10"; query !== null;) {
      const { data, unread, next_cursor } = runList().parse((await send(query)).json);
      seen.push(...data.map(({ id }) => id), ...unread.map(({ id }) => id));
      query = next_cursor === null ? null : `limit=10&cursor=${next_cursor}`;
    }
    expect(seen.toSorted()).toEqual(HUNDRED.map(({ id }) => id).toSorted());
  });
});

describe("a list", () => {
  it("keeps a run that is just being opened, and says nothing of it", async () => {
    const send = place({ runs: [{ id: DELETED, openedAt: NOW_MS * 1_000 }], document: () => null });
    const { data, unread } = runList().parse((await send("limit=10")).json);
    expect([data, unread]).toEqual([[], []]);
  });

  it("is shown although a part of it does not answer, and says that it is not whole", async () => {
    const part = (name: string): void => {
      if (name !== "runs/0") throw Object.assign(new Error("too many requests"), { overloaded: true });
    };
    const { status, json } = await place({ runs: HUNDRED, document: documentOf, part })("limit=5");
    const { data, missing_parts } = runList().parse(json);
    expect([status, data.length, missing_parts]).toEqual([200, 5, DIRECTORY_SHARDS]);
  });

  it("is refused with a wait if no part of it answers", async () => {
    const part = (): void => {
      throw Object.assign(new Error("too many requests"), { overloaded: true });
    };
    expect(await place({ runs: HUNDRED, document: documentOf, part })("limit=5")).toMatchObject({
      status: 503,
      json: { error: { code: "overloaded" } },
    });
  });
});
