/** Several keys of one upstream: each attempt goes to the one with most room, and away from those that do not work. */
import { describe, expect, it } from "vitest";
import type { Outcome } from "../../../../src/call.ts";
import { leaseOf } from "../../../../src/run/steps/dispatch.ts";
import { settle } from "../../../../src/run/steps/settle.ts";
import { shardText, type StoredShard, type Target } from "../../../../src/run/leases/shard.ts";
import { KEY_PROBE_MS } from "../../../../src/limits.ts";
import { alike, failure, makeTarget, success, TestEngine } from "../../../support/engine.ts";

function keyed(names: readonly string[], fields: Partial<Target> = {}): Target {
  const [first, ...others] = names.map((key) => makeTarget({ gate: `acme#${key}`, key, ...fields }));
  if (first === undefined) throw new Error("no key");
  return { ...first, choices: [{ targets: [first, ...others], on: null }] };
}

const engineOf = (names: readonly string[], fields: Partial<Target> = {}): TestEngine =>
  new TestEngine({ targets: [keyed(names, fields)] });

/** Starts what may start; the attempts by key. */
function started(engine: TestEngine, nowMs: number): { id: string; key: string | undefined }[] {
  return engine.turn([512], nowMs).assignments.map(({ lease }) => ({ id: lease.attemptId, key: lease.target.key }));
}

const keysOf = (attempts: readonly { key: string | undefined }[]) => attempts.map(({ key }) => key);

const QUOTA: Outcome = {
  ...{ kind: "failure", class: "rate_limited", answered: true, retryAfterMs: null, latencyMs: 1 },
  reason: { reason: "upstream_rate_limited", upstream: "acme", message: "no quota", retryAfterMs: null },
  stop: "insufficient_quota",
};

describe("an upstream with several keys", () => {
  it("gives each attempt the key with the fewest in flight", () => {
    const engine = engineOf(["A", "B", "C"]);
    engine.open(alike(4));
    const first = started(engine, 0);
    expect(keysOf(first)).toEqual(["A", "B", "C", "A"]);
    settle(engine.state, first[1]?.id ?? "", success(), 1);
    engine.open(alike(1));
    expect(keysOf(started(engine, 1))).toEqual(["B"]);
  });

  it("has max_in_flight attempts in flight with each key, and no more", () => {
    const engine = engineOf(["A", "B"], { maxInFlight: 2 });
    engine.open(alike(6));
    expect(keysOf(started(engine, 0))).toEqual(["A", "B", "A", "B"]);
    expect(engine.state.queue.readyCount).toBe(2);
  });

  it("names the key in the lease and in the stored lease", () => {
    const engine = engineOf(["A", "B"]);
    engine.open(alike(2));
    const [, second] = engine.turn([512], 0).assignments;
    expect(second === undefined ? null : leaseOf(second)).toMatchObject({ upstream: "acme", key: "B" });
    const shards = [...engine.state.shards.values()].map((shard): StoredShard => JSON.parse(shardText(shard)));
    expect(shards.flatMap(({ leases }) => leases.map(({ key }) => key))).toEqual(["A", "B"]);
  });

  it("retries a rate-limited call at once with another key, and leaves the limited one alone", () => {
    const engine = engineOf(["A", "B"]);
    engine.open(alike(1));
    const [attempt] = started(engine, 0);
    expect(settle(engine.state, attempt?.id ?? "", failure("rate_limited", 30_000), 5)).toMatchObject({ retryInMs: 0 });
    engine.open(alike(2));
    expect(keysOf(started(engine, 5))).toEqual(["B", "B", "B"]);
  });

  it("retries a rate-limited call after the wait if every key is limited", () => {
    const engine = engineOf(["A", "B"]);
    engine.open(alike(2));
    const [a, b] = started(engine, 0);
    settle(engine.state, a?.id ?? "", failure("rate_limited", 20_000), 5);
    const last = settle(engine.state, b?.id ?? "", failure("rate_limited", 30_000), 5);
    expect(last).toMatchObject({ retryInMs: 30_000 });
    expect(started(engine, 19_000)).toEqual([]);
    expect(keysOf(started(engine, 20_005))).toEqual(["A"]);
  });

  it("drops a stopped key for all calls, but for one attempt a minute, until it works", () => {
    const engine = engineOf(["A", "B"]);
    engine.open(alike(1));
    const [attempt] = started(engine, 0);
    expect(settle(engine.state, attempt?.id ?? "", QUOTA, 0)).toMatchObject({ retryInMs: 0 });
    engine.open(alike(3));
    expect(keysOf(started(engine, 0))).toEqual(["B", "B", "B", "B"]);
    engine.open(alike(3));
    const later = started(engine, KEY_PROBE_MS);
    expect(keysOf(later)).toEqual(["A", "B", "B"]);
    settle(engine.state, later[0]?.id ?? "", success(), KEY_PROBE_MS + 1);
    engine.open(alike(2));
    expect(keysOf(started(engine, KEY_PROBE_MS + 1))).toEqual(["A", "A"]);
  });

  it("takes no attempt of a call for a stop: its others are still max_attempts", () => {
    const engine = engineOf(["A", "B"], { attemptsMax: 2 });
    const group = engine.open(alike(1));
    const next = (nowMs: number): string => started(engine, nowMs)[0]?.id ?? "";
    settle(engine.state, next(0), QUOTA, 0);
    expect(settle(engine.state, next(0), failure("transient"), 0)).toMatchObject({ retryInMs: 0 });
    expect(settle(engine.state, next(0), failure("transient"), 0)).toMatchObject({ retryInMs: null });
    expect([group.done, group.counts.failed, group.attempts[0]]).toEqual([true, 1, 3]);
  });

  it("fails a call without a deadline when every key is stopped, as it does with one key", () => {
    const engine = engineOf(["A", "B"]);
    for (const callId of ["a", "b"]) engine.call(callId, 0);
    const [a, b] = started(engine, 0);
    expect(settle(engine.state, a?.id ?? "", QUOTA, 0)).toMatchObject({ retryInMs: 0 });
    expect(settle(engine.state, b?.id ?? "", QUOTA, 0)).toMatchObject({ retryInMs: null });
  });

  it("lets slots wait when every key is stopped, until one of them works", () => {
    const engine = engineOf(["A", "B"]);
    const group = engine.open(alike(2));
    const [a, b] = started(engine, 0);
    expect(settle(engine.state, a?.id ?? "", QUOTA, 0)).toMatchObject({ retryInMs: 0 });
    expect(settle(engine.state, b?.id ?? "", QUOTA, 0)).toMatchObject({ retryInMs: 0 });
    expect(started(engine, KEY_PROBE_MS - 1)).toEqual([]);
    const probes = started(engine, KEY_PROBE_MS);
    expect(keysOf(probes)).toEqual(["A", "B"]);
    for (const { id } of probes) settle(engine.state, id, success(), KEY_PROBE_MS + 1);
    expect([group.done, group.counts.completed]).toEqual([true, 2]);
  });

  it("keeps what a single call has tried in the reply to its settlement", () => {
    const engine = engineOf(["A", "B"], { attemptsMax: 2 });
    engine.call("call", 0);
    const [first] = started(engine, 0);
    const settled = settle(engine.state, first?.id ?? "", failure("transient"), 0);
    expect(settled).toMatchObject({ retryInMs: 0, position: { tried: [1] } });
  });
});
