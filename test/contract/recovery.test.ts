/**
 * A gateway that is killed in the middle of its work and started again on the same disk, with the same configuration and
 * with another, as a deploy brings it. One kill meets several runs, each with its own kind of work; the tests look at
 * what came of it. The waits are those of leases: what was at the upstream when the gateway died is asked for again when
 * its lease is over.
 */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { endOf, eventsOf, logOf, numbered, openGroup } from "./following.ts";
import { providerAt, startRestarting, type Restarting } from "./restarting.ts";
import { documentOf, errorOf, groupOf, replyOf, type Answer, type RunAccess } from "./world.ts";

/** Longest until everything runs again, ms: a lease and some. */
const RECOVERY_MS_MAX = 60_000;
const WIDTH = 6;
const settings = { default_model: "up-1", budget: { usd: 5 }, max_parallel: WIDTH };

const slow = (name: string, count: number) => Array.from({ length: count }, (_, at) => `{{delay/120}} ${name} ${at}`);
const LEFT = slow("left", 120);
const KEYED = slow("keyed", 120);
const LOST = slow("lost", 60);
const DONE = ["done a", "{{status/400}} done b"];
const keyed = (body: object, key: string) => ({ json: body, headers: { "idempotency-key": key } });

type Played = {
  place: Restarting;
  runs: Record<"left" | "keyed" | "lost" | "done" | "query" | "stored", RunAccess>;
  at: { left: string; lost: string };
  /** What was answered, and charged, before the kill. */
  before: { done: string; spent: number; requests: number };
  /** Time from the restart to the first call, and to the last of the group without a client, ms. */
  againMs: number;
  recoveredMs: number;
  /** What was asked for once more after that, of the batch and of the call that the kill interrupted: each ends with a lease. */
  again: { keyed: Answer; stored: Answer };
};

/** All that were started, so that they are stopped even if what is played on them fails. */
const places: Restarting[] = [];

async function started(): Promise<Restarting> {
  const place = await startRestarting();
  places.push(place);
  return place;
}

async function play(vars: (place: Restarting) => Record<string, unknown>): Promise<Played> {
  const place = await started();
  const open = () => place.openRun(settings);
  const [left, keyedRun, lost, done, query, stored] = await Promise.all([
    open(),
    open(),
    open(),
    open(),
    open(),
    open(),
  ]);
  const runs = { left, keyed: keyedRun, lost, done, query, stored };
  const doneText = (await done.send("/batch", keyed({ prompts: DONE }, "done"))).text;
  const { budget } = await documentOf(done);
  const at = {
    left: (await openGroup(left, { prompts: LEFT })).at,
    lost: (await openGroup(lost, { prompts: LOST, on_lost: "fail" })).at,
  };
  // Those who wait when the gateway dies read nothing.
  const waiting = [
    keyedRun.send("/batch", keyed({ prompts: KEYED }, "batch")),
    query.send("/query", { json: { prompt: "{{fault/hang/first/1}} query" } }),
    stored.send("/query", keyed({ prompt: "{{fault/hang/first/1}} stored" }, "query")),
  ].map((answer) => expect(answer).rejects.toThrow());
  const { counters } = place.upstream;
  const asked = () => counters.requests;
  await vi.waitUntil(() => asked() > 80, { interval: 10, timeout: RECOVERY_MS_MAX });
  await place.restart(vars(place));
  await Promise.all(waiting);
  const before = { done: doneText, spent: budget.usd.spent, requests: asked() };
  const restartedMs = performance.now();
  await vi.waitUntil(() => asked() > before.requests, { interval: 20, timeout: RECOVERY_MS_MAX });
  const againMs = performance.now() - restartedMs;
  const allSent = () => LEFT.every((prompt) => counters.sends.has(prompt));
  await vi.waitUntil(allSent, { interval: 100, timeout: RECOVERY_MS_MAX });
  // The first that speaks to the new gateway, and only now.
  groupOf(await endOf(left, at.left));
  const recoveredMs = performance.now() - restartedMs;
  // All of these wait for the ends of leases, which begin when their runs wake: together, and beside those of the other gateway.
  const [again] = await Promise.all([askAgain(keyedRun, stored), documentOf(query)]);
  return { place, runs, at, before, againMs, recoveredMs, again };
}

async function askAgain(keyedRun: RunAccess, stored: RunAccess): Promise<Played["again"]> {
  const [keyedAnswer, storedAnswer] = await Promise.all([
    keyedRun.send("/batch", keyed({ prompts: KEYED }, "batch")),
    stored.send("/query", keyed({ prompt: "{{fault/hang/first/1}} stored" }, "query")),
  ]);
  return { keyed: keyedAnswer, stored: storedAnswer };
}

const same = () => ({});
/** Twice as dear, another default, another provider beside it, another grant. */
const deployed = ({ upstream }: Restarting) => ({
  UPSTREAMS: { other: { kind: "simulated" }, up: { ...providerAt(upstream, 2), max_in_flight: 64 } },
  DEFAULT_MODEL: "other/echo",
});

/** The events of a follower that reconnects to the restarted gateway, and the log's. */
async function playFollower(): Promise<{ told: number[]; logged: number[] }> {
  const place = await started();
  const run = await place.openRun(settings);
  const { at } = await openGroup(run, { prompts: slow("followed", 60) });
  const told: number[] = [];
  const follow = async () => {
    const headers = { "last-event-id": String(told.length) };
    const response = await place.gateway().fetch(`/runs/${run.id}/events`, { token: run.token, headers });
    for await (const { seq } of eventsOf(response)) told.push(seq);
  };
  const cut = expect(follow()).rejects.toThrow();
  await vi.waitUntil(() => told.length > 40, { interval: 10, timeout: RECOVERY_MS_MAX });
  await place.restart();
  await cut;
  const rest = follow();
  await endOf(run, at);
  await run.send(`/runs/${run.id}/close`, { method: "POST" });
  await rest;
  const logged = (await logOf(run)).map(({ seq }) => seq);
  return { told, logged };
}

const played = new Map<string, Played>();
let followed: { told: number[]; logged: number[] };
beforeAll(async () => {
  const [restarted, redeployed, follower] = await Promise.all([play(same), play(deployed), playFollower()]);
  played.set("the same configuration", restarted).set("another configuration", redeployed);
  followed = follower;
}, 180_000);
afterAll(() => Promise.all(places.map((place) => place.stop())));

describe.each(["the same configuration", "another configuration"])(
  "a gateway killed and restarted with %s",
  { tags: ["slow"] },
  (name) => {
    const now = (): Played => {
      const one = played.get(name);
      if (one === undefined) throw new Error(`nothing was played with ${name}`);
      return one;
    };
    /** How often the upstream was sent each of some prompts. */
    const sends = (prompts: readonly string[]) =>
      prompts.map((prompt) => now().place.upstream.counters.sends.get(prompt) ?? 0);
    const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0);

    it("resumes a group without any client within a minute", async () => {
      const { runs, at, recoveredMs, againMs } = now();
      expect(groupOf(await endOf(runs.left, at.left))).toMatchObject({ status: "completed", results: LEFT });
      console.info(`${name}: first call after ${Math.round(againMs)} ms, all after ${Math.round(recoveredMs)} ms`);
      expect(againMs).toBeLessThan(RECOVERY_MS_MAX);
    });

    it("repeats only what was at the upstream at the kill, and charges that twice", async () => {
      const { runs } = now();
      const counts = sends(LEFT);
      expect(Math.max(...counts)).toBeLessThanOrEqual(2);
      expect(sum(counts)).toBeLessThanOrEqual(LEFT.length + WIDTH);
      const { budget } = await documentOf(runs.left);
      expect(budget.calls.spent).toBeGreaterThanOrEqual(sum(counts));
      expect(budget.calls.spent).toBeLessThanOrEqual(LEFT.length + WIDTH);
      expect([budget.calls.reserved, budget.usd.reserved, budget.completion_tokens.reserved]).toEqual([0, 0, 0]);
    });

    it("logs the end of every slot once, without gaps, across the kill", async () => {
      const { runs } = now();
      const lines = await logOf(runs.left);
      expect(lines.map(({ seq }) => seq)).toEqual(numbered(lines.length));
      const ended = lines
        .filter(({ event_type }) => event_type === "slot_completed")
        .map((line) => Number(line["index"]));
      expect(ended.toSorted((a, b) => a - b)).toEqual(numbered(LEFT.length, 0));
      const { budget } = await documentOf(runs.left);
      const charged = lines
        .filter(({ event_type }) => event_type === "attempt_ended")
        .map((line) => usdOf(line["charged"]));
      expect(Math.round(charged.reduce((total, usd) => total + usd, 0) * 1e9)).toBe(Math.round(budget.usd.spent * 1e9));
    });

    it(
      "replays the same results by the idempotency key of a batch that the kill interrupted",
      { tags: ["slow"] },
      () => {
        const answer = now().again.keyed;
        expect(groupOf(answer)).toMatchObject({ status: "completed", results: KEYED });
        expect(answer.headers.get("idempotent-replayed")).toBe("true");
        expect(sum(sends(KEYED))).toBeLessThanOrEqual(KEYED.length + WIDTH);
      },
    );

    it("replays ended answers unchanged, at their original price", async () => {
      const { runs, before } = now();
      const again = await runs.done.send("/batch", keyed({ prompts: DONE }, "done"));
      expect(again.text.trim()).toBe(before.done.trim());
      expect((await documentOf(runs.done)).budget.usd.spent).toBe(before.spent);
      expect(sends(DONE)).toEqual([1, 1]);
      const other = await runs.done.send("/batch", keyed({ prompts: ["another"] }, "done"));
      expect([other.status, errorOf(other).code]).toEqual([409, "idempotency_conflict"]);
    });

    it("fails what was at the upstream if on_lost is fail, and runs the rest", async () => {
      const { runs, at } = now();
      const group = groupOf(await endOf(runs.lost, at.lost));
      const failed = group.items.filter(({ status }) => status !== "completed");
      expect(group.status).toBe("partial");
      expect(failed.length).toBeGreaterThan(0);
      expect(failed.length).toBeLessThanOrEqual(WIDTH);
      for (const item of failed) expect(item).toMatchObject({ status: "failed", attempts: 1, estimated: true });
      expect(Math.max(...sends(LOST))).toBe(1);
    });

    it("ends the call of a /query with an idempotency key, so that a retry gets its answer", { tags: ["slow"] }, () => {
      const reply = replyOf(now().again.stored);
      expect([reply.text, reply.attempts]).toEqual(["{{fault/hang/first/1}} stored", 2]);
    });

    it("leaves nothing reserved for a call whose client and Worker are gone", { tags: ["slow"] }, async () => {
      const { runs } = now();
      const reserved = async () => (await documentOf(runs.query)).budget.usd.reserved;
      await expect.poll(reserved, { timeout: RECOVERY_MS_MAX, interval: 500 }).toBe(0);
      const { budget, stats } = await documentOf(runs.query);
      expect([budget.calls.spent, stats.pending_queries]).toEqual([1, 0]);
      expect(replyOf(await runs.query.send("/query", { json: { prompt: "next" } })).text).toBe("next");
    });
  },
);

describe("a follower of events", { tags: ["slow"] }, () => {
  it("resumes at the restarted gateway without gap or repeat", () => {
    expect(followed.told).toEqual(numbered(followed.told.length));
    expect(followed.told).toEqual(followed.logged);
  });
});

function usdOf(charged: unknown): number {
  return typeof charged === "object" && charged !== null && "usd" in charged ? Number(charged.usd) : Number.NaN;
}
