/** A route in the engine: which target each attempt goes to, at what price, and when the call ends. */
import { describe, expect, it } from "vitest";
import type { FallbackCause, Outcome } from "../../../../src/call.ts";
import { leaseOf } from "../../../../src/run/steps/dispatch.ts";
import { settle } from "../../../../src/run/steps/settle.ts";
import type { Choice, Target } from "../../../../src/run/leases/shard.ts";
import { dueExchanges, granted } from "../../../../src/run/steps/exchange.ts";
import { CHOICE_ATTEMPTS_MAX, KEY_PROBE_MS } from "../../../../src/limits.ts";
import { alike, failure, makeTarget, PLAIN_PRICE, success, TestEngine } from "../../../support/engine.ts";
import { makeChunk, makeGrant } from "../../../support/gate-grants.ts";

type Entry = Partial<Target> & { on?: readonly FallbackCause[]; keys?: readonly string[] };

/** A target with choices, one for each entry; the upstreams are named by letters. */
function route(...entries: Entry[]): Target {
  const choices: Choice[] = entries.map(({ on, keys, ...fields }, index) => {
    const upstream = "abcdefgh"[index] ?? "";
    const gates = keys?.map((key) => ({ gate: `${upstream}#${key}`, key })) ?? [{ gate: upstream }];
    return { on: on ?? null, targets: gates.map((gate) => makeTarget({ upstream, ...gate, ...fields })) };
  });
  const first = choices[0]?.targets[0];
  if (first === undefined) throw new Error("no target");
  return { ...first, route: "fast", choices };
}

const engineOf = (...entries: Entry[]): TestEngine => new TestEngine({ targets: [route(...entries)] });

type Started = { id: string; at: string };

function start(engine: TestEngine, nowMs: number): Started[] {
  return engine.turn([512], nowMs).assignments.map(({ lease }) => ({ id: lease.attemptId, at: lease.target.gate }));
}

const placesOf = (attempts: readonly Started[]): string => attempts.map(({ at }) => at).join(" ");

/** Ends each attempt of a single slot as told, at the same time if no wait is needed: where they went, and the last reply. */
function play(engine: TestEngine, outcomes: readonly Outcome[]): { places: string; last: number | null; atMs: number } {
  const group = engine.open(alike(1));
  const places: string[] = [];
  let nowMs = 0;
  let last: number | null = null;
  for (const outcome of outcomes) {
    const [attempt] = start(engine, nowMs);
    if (attempt === undefined) break;
    places.push(attempt.at);
    last = settle(engine.state, attempt.id, outcome, nowMs)?.retryInMs ?? null;
    if (last === null) break;
    nowMs += last;
  }
  expect(group.done).toBe(last === null);
  return { places: places.join(" "), last, atMs: nowMs };
}

const times = (count: number, outcome: Outcome): Outcome[] => Array.from({ length: count }, () => outcome);

function failed(status: number | null, upstreamCode?: string): Extract<Outcome, { kind: "failure" }> {
  const code = upstreamCode === undefined ? {} : { upstreamCode };
  const reason = { reason: "upstream_error", upstream: "a", status, message: "no", retryable: false, ...code } as const;
  return { kind: "failure", class: "rejected", reason, answered: true, retryAfterMs: null, latencyMs: 1 };
}

const TOO_LONG = failed(400, "context_length_exceeded");
const BAD_KEY: Outcome = { ...failed(401), stop: "invalid_key" };
const REFUSED = failed(400, "invalid_value");
const UNSENDABLE: Outcome = {
  ...{ kind: "failure", class: "rejected", answered: false, retryAfterMs: null, latencyMs: 0 },
  reason: { reason: "invalid_request", message: "the API has no such part", param: "messages" },
};
const TIMED_OUT: Outcome = {
  ...{ kind: "failure", class: "unknown", answered: false, retryAfterMs: null, latencyMs: 5 },
  reason: { reason: "upstream_timeout", upstream: "a", timeoutMs: 5 },
};

describe("a call to a route", () => {
  it("goes to the first target", () => {
    expect(play(engineOf({}, {}), [success()]).places).toBe("a");
  });

  it.each([
    ["is rate-limited", failure("rate_limited", 30_000)],
    ["is overloaded", failure("transient")],
    ["takes too long", TIMED_OUT],
    ["does not accept the key", BAD_KEY],
  ])("goes to the next at once if the first %s", (_, outcome) => {
    expect(play(engineOf({}, {}), [outcome, success()])).toEqual({ places: "a b", last: null, atMs: 0 });
  });

  it.each([
    ["the prompt is too long", TOO_LONG],
    ["the request is refused", REFUSED],
  ])("ends at the first if %s, and the next names no causes", (_, outcome) => {
    expect(play(engineOf({}, {}), [outcome, success()])).toMatchObject({ places: "a", last: null });
  });

  it("goes to the first target that takes its cause", () => {
    const engine = () => engineOf({}, { on: ["stop"] }, { on: ["context_length", "rate_limited"] });
    expect(play(engine(), [TOO_LONG, success()]).places).toBe("a c");
    expect(play(engine(), [BAD_KEY, success()]).places).toBe("a b");
    expect(play(engine(), [failure("rate_limited", 9), success()]).places).toBe("a c");
    expect(play(engine(), [failure("transient"), success()]).places).toBe("a a");
  });

  it("comes back when all have failed, after a delay, until each has had its attempts", () => {
    const engine = new TestEngine({ random: () => 0.5, targets: [route({ attemptsMax: 2 }, { attemptsMax: 3 })] });
    const { places, last, atMs } = play(engine, times(9, failure("transient")));
    expect([places, last]).toEqual(["a b a b b", null]);
    expect(atMs).toBeGreaterThan(0);
  });

  it("does not wait at another target for what the last has asked for", () => {
    const engine = engineOf({}, {});
    const { places, atMs } = play(engine, [failure("transient"), failure("rate_limited", 60_000), success()]);
    expect([places, atMs]).toEqual(["a b a", 0]);
  });

  it.each([
    ["is stopped", BAD_KEY],
    ["finds the prompt too long", TOO_LONG],
  ])("comes back to a target that had a passing failure when the other one %s", (_, outcome) => {
    const engine = engineOf({ attemptsMax: 2 }, { on: ["upstream_error"] });
    expect(play(engine, [failure("transient"), outcome, success()])).toMatchObject({
      places: "a b a",
      last: null,
    });
  });

  it("is not made again where the prompt was too long", () => {
    const engine = engineOf({}, { on: ["context_length"] });
    expect(play(engine, times(9, TOO_LONG))).toMatchObject({ places: "a b", last: null });
  });

  it("waits for a limited target rather than to be made at a stopped one", () => {
    const engine = engineOf({}, {});
    engine.open(alike(2));
    const [first, second] = start(engine, 0);
    settle(engine.state, first?.id ?? "", failure("rate_limited", 30_000), 0);
    settle(engine.state, second?.id ?? "", failure("rate_limited", 30_000), 0);
    const [stopped] = start(engine, 0);
    expect(stopped?.at).toBe("b");
    expect(settle(engine.state, stopped?.id ?? "", BAD_KEY, 0)?.retryInMs).not.toBeNull();
    engine.open(alike(1));
    expect(start(engine, 0)).toEqual([]);
    expect(placesOf(start(engine, 30_000)).split(" ")[0]).toBe("a");
  });

  it("skips a target that cannot express it, and ends with what that says if none can", () => {
    expect(
      play(engineOf({}, {}, {}), [failure("transient"), UNSENDABLE, failure("transient"), failure("transient")]).places,
    ).toBe("a b c a");
    expect(play(engineOf({}, {}), times(9, UNSENDABLE))).toMatchObject({ places: "a b", last: null });
  });

  it("is not made elsewhere after an unknown outcome if its client wants none retried", () => {
    const engine = engineOf({}, {});
    const group = engine.open(alike(1), { onLost: "fail" });
    const [attempt] = start(engine, 0);
    settle(engine.state, attempt?.id ?? "", TIMED_OUT, 5);
    expect([group.done, group.counts.failed]).toEqual([true, 1]);
  });

  it("starts at a later target while the first is limited, and at the first again afterwards", () => {
    const engine = engineOf({}, {});
    engine.open(alike(1));
    const [limited] = start(engine, 0);
    settle(engine.state, limited?.id ?? "", failure("rate_limited", 30_000), 0);
    engine.open(alike(3));
    expect(placesOf(start(engine, 0))).toBe("b b b b");
    engine.open(alike(1));
    expect(placesOf(start(engine, 30_000))).toBe("a");
  });

  it("starts at a later target while the first is stopped, but for one call a minute", () => {
    const engine = engineOf({}, {});
    engine.open(alike(1));
    const [stopped] = start(engine, 0);
    settle(engine.state, stopped?.id ?? "", BAD_KEY, 0);
    engine.open(alike(1));
    expect(placesOf(start(engine, 0))).toBe("b b");
    engine.open(alike(3));
    expect(placesOf(start(engine, KEY_PROBE_MS))).toBe("a b b");
  });

  it("waits for its turn at a target that is full: that is no failure", () => {
    const engine = engineOf({ maxInFlight: 2 }, {});
    engine.open(alike(4));
    expect(placesOf(start(engine, 0))).toBe("a a");
  });

  it.each([
    ["takes no more at once", { permits: 2 }],
    ["takes one now and then", { permits: 3, requests: 1 }],
  ])("starts at a later target where the first %s, because it rejects calls", (_, counts) => {
    const engine = new TestEngine({ hasGates: true, random: () => 0.5, targets: [route({}, {})] });
    engine.open(alike(1));
    start(engine, 0);
    const shrunk = makeChunk({ class: "shrunk", reason: "width", ...counts });
    for (const { gate } of dueExchanges(engine.state, { run: "run_1", instance: "i", weight: 1 }, 0))
      granted(engine.state, gate, gate === "a" ? shrunk : makeGrant(), 0);
    engine.open(alike(3));
    expect(placesOf(start(engine, 1))).toBe("a b b");
  });

  it("that waits for a later target does not hold up calls for the first", () => {
    const engine = engineOf({}, { maxInFlight: 1 });
    engine.open(alike(2));
    const [first, second] = start(engine, 0);
    settle(engine.state, first?.id ?? "", failure("transient"), 0);
    settle(engine.state, second?.id ?? "", failure("transient"), 0);
    engine.open(alike(2));
    expect(placesOf(start(engine, 0)).split(" ").toSorted().join(" ")).toBe("a a b");
  });

  it("tries the keys of a target before the next target", () => {
    const engine = engineOf({ keys: ["A", "B"] }, {});
    const { places, last } = play(engine, [failure("rate_limited", 30_000), BAD_KEY, success()]);
    expect([places, last]).toEqual(["a#A a#B b", null]);
  });

  it("waits in a batch when every key of every target is stopped, and ends if its client waits for it alone", () => {
    const engine = engineOf({ keys: ["A", "B"] }, { keys: ["C"] });
    expect(play(engine, times(20, BAD_KEY))).toMatchObject({ places: "a#A a#B b#C", last: 0 });
    expect(placesOf(start(engine, KEY_PROBE_MS))).toBe("a#A");
    const other = engineOf({ keys: ["A", "B"] }, { keys: ["C"] });
    let position = {};
    const ends = ["a#A", "a#B", "b#C"].map((at, made) => {
      other.call("alone", 0, { attempt: made + 1, ...position });
      const [attempt] = start(other, 0);
      expect(attempt?.at).toBe(at);
      const settled = settle(other.state, attempt?.id ?? "", BAD_KEY, 0);
      position = settled?.position === undefined ? {} : { position: settled.position };
      return settled?.retryInMs;
    });
    expect(ends).toEqual([0, 0, null]);
  });

  it("has a bounded number of attempts, whatever happens", () => {
    const engine = engineOf(...Array.from({ length: 8 }, () => ({ attemptsMax: 10 })));
    const { places, last } = play(engine, times(200, failure("transient")));
    expect([places.split(" ").length, last]).toEqual([CHOICE_ATTEMPTS_MAX, null]);
  });

  it("reserves and is charged at the price of the target that it goes to", () => {
    const dear = { inputPicoUsd: 10_000, cachedInputPicoUsd: 10_000, outputPicoUsd: 20_000 };
    const engine = new TestEngine({
      limits: { usd: 100_000 },
      targets: [route({ price: PLAIN_PRICE }, { price: dear })],
    });
    const group = engine.open(alike(1));
    const [cheap] = engine.turn([1], 0).assignments;
    const reserved = cheap?.lease.amounts.usd ?? 0;
    expect(reserved).toBeGreaterThan(0);
    settle(engine.state, cheap?.lease.attemptId ?? "", failure("transient"), 0);
    const [costly] = engine.turn([1], 0).assignments;
    expect(costly?.lease.amounts.usd).toBe(10 * reserved);
    const usage = { promptTokens: 3, completionTokens: 4 };
    settle(engine.state, costly?.lease.attemptId ?? "", success(usage), 1);
    expect(group.usage.costNanoUsd).toBe(3 * 10 + 4 * 20);
    expect(engine.state.ledger.remaining("usd")).toBe(100_000 - 110);
  });

  it("has a lease with its route, a record with who answered, and a log with why it went there", () => {
    const engine = engineOf({}, {});
    engine.open(alike(1));
    const [first] = engine.turn([1], 0).assignments;
    expect(first === undefined ? null : leaseOf(first)).toMatchObject({ upstream: "a", route: "fast" });
    settle(engine.state, first?.lease.attemptId ?? "", failure("transient"), 0);
    const [second] = engine.turn([1], 0).assignments;
    settle(engine.state, second?.lease.attemptId ?? "", success(), 0);
    const [record] = engine.state.takeWrites().slots.slice(-1);
    expect(record).toMatchObject({ state: "completed", upstream: "b" });
    expect(record).not.toHaveProperty("position");
    const started = (engine.state.log.take()?.events ?? []).filter(({ event }) => event === "attempt_started");
    expect(started).toMatchObject([
      { upstream: "a", route: "fast" },
      { upstream: "b", route: "fast", fallback: "upstream_error" },
    ]);
    expect(started[0]).not.toHaveProperty("fallback");
  });

  it("that came as its client wrote it goes only to targets of its protocol", () => {
    const targets = [route({ protocol: "openai" }, { protocol: "anthropic" }, {}, { protocol: "openai" })];
    const gone = (fields: { isRaw?: true; endpoint?: "messages" }): string => {
      const engine = new TestEngine({ targets });
      engine.open([fields]);
      const places: string[] = [];
      for (let attempt = 0; attempt < 4; attempt++) {
        const [started] = start(engine, 0);
        if (started === undefined) throw new Error("nothing started");
        places.push(started.at);
        settle(engine.state, started.id, failure("transient"), 0);
      }
      return places.join(" ");
    };
    expect(gone({})).toBe("a b c d");
    expect(gone({ isRaw: true })).toBe("a c d a");
    expect(gone({ isRaw: true, endpoint: "messages" })).toBe("b c b c");
  });
});
