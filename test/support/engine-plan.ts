/**
 * Random histories of a run, as data that fast-check generates, shrinks and prints. Numbers select among what exists.
 */
import * as fc from "fast-check";
import type { FailureClass, FallbackCause, Priority, StopReason } from "../../src/call.ts";
import type { Target } from "../../src/run/leases/shard.ts";
import type { Limits } from "../../src/run/money/ledger.ts";
import { makeTarget } from "./engine.ts";
import { GATE_MODES, type GateMode } from "./engine-gates.ts";

/** Two upstreams of different widths; prices from high to free, one with cache reads above input. */
export const TARGETS: Readonly<Record<string, Target>> = {
  "wide/dear": makeTarget({
    upstream: "wide",
    model: "dear",
    maxInFlight: 5,
    price: { inputPicoUsd: 150_000, cachedInputPicoUsd: 75_000, outputPicoUsd: 600_000 },
  }),
  "wide/cheap": makeTarget({
    upstream: "wide",
    model: "cheap",
    maxInFlight: 5,
    price: { inputPicoUsd: 300, cachedInputPicoUsd: 900, outputPicoUsd: 41 },
  }),
  "narrow/dear": makeTarget({
    upstream: "narrow",
    model: "dear",
    maxInFlight: 2,
    attemptsMax: 2,
    price: { inputPicoUsd: 1_000, cachedInputPicoUsd: 100, outputPicoUsd: 2_000_000 },
  }),
  "narrow/free": makeTarget({ upstream: "narrow", model: "free", maxInFlight: 2, price: null }),
};

/** Two keys of one upstream. */
const KEYS = ["A", "B"].map((key) =>
  makeTarget({
    ...{ upstream: "keyed", gate: `keyed#${key}`, key, model: "m", maxInFlight: 2, attemptsMax: 2 },
    price: { inputPicoUsd: 5_000, cachedInputPicoUsd: 5_000, outputPicoUsd: 7_000 },
  }),
);

/** Every target that an attempt may have. */
export const LEASED: readonly Target[] = [...Object.values(TARGETS), ...KEYS];

/** Every gate. */
export const GATES: readonly string[] = [...new Set(LEASED.map(({ gate }) => gate))];

function targetsAt(name: string): Target[] {
  return LEASED.filter(({ upstream, model }) => `${upstream}/${model}` === name);
}

/** A model that dispatch chooses targets for; `route` undefined = the keys of one upstream. */
function choiceOf(
  route: string | undefined,
  names: readonly string[],
  lastOn: readonly FallbackCause[] | null,
): Target {
  const choices = names.map((name, index) => ({
    targets: targetsAt(name),
    on: index > 0 && index === names.length - 1 ? lastOn : null,
  }));
  const first = choices[0]?.targets[0];
  if (first === undefined) throw new Error(`no target is named ${names[0]}`);
  return { ...first, choices, ...(route === undefined ? {} : { route }) };
}

/** What each model that is configured resolves to: one target, the keys of an upstream, or the targets of a route. */
export const RESOLVED: Readonly<Record<string, Target>> = {
  ...TARGETS,
  "keyed/m": choiceOf(undefined, ["keyed/m"], null),
  pair: choiceOf("pair", ["narrow/dear", "wide/cheap"], null),
  many: choiceOf("many", ["keyed/m", "narrow/dear", "wide/dear"], ["rate_limited", "stop", "timeout"]),
};

/** Models that calls name; the last is not configured. */
export const MODELS = [...Object.keys(RESOLVED), "gone/model"] as const;

/** `dedupe`: number of the in-flight key; null = the call has none. */
export type PlannedCall = {
  model: number;
  promptBytes: number;
  maxTokens: number | null;
  priority: Priority;
  dedupe: number | null;
};

type OnLost = "retry" | "fail";

export type PlannedOutcome =
  /** `promptShare` and `completionShare` of what was reserved; `costShare` null = the upstream names no cost. */
  | { kind: "usage"; promptShare: number; completionShare: number; cachedShare: number; costShare: number | null }
  | { kind: "no_usage" }
  | { kind: "failure"; class: FailureClass; answered: boolean; retryAfterMs: number | null; stop: StopReason | null };

export type Step =
  | ({ do: "open" } & PlannedGroup)
  /** A single call that is stored as a group of one. */
  | { do: "single"; call: PlannedCall; onLost: OnLost }
  | { do: "call"; call: PlannedCall; delayMs: number; onLost: OnLost }
  | { do: "withdraw"; pick: number }
  | { do: "lane"; lane: number; want: number }
  /** The Worker of a group waits for its group's slots. */
  | { do: "worker"; pick: number; want: number }
  | { do: "settle"; pick: number; outcome: PlannedOutcome }
  | { do: "settle_again"; pick: number }
  | { do: "heartbeat"; every: number }
  | { do: "advance"; ms: number }
  | { do: "expire" }
  | { do: "drain"; pick: number; state: "cancelled" | "failed" }
  | { do: "cancel"; pick: number }
  | { do: "gate"; gate: "wide" | "narrow"; mode: GateMode }
  /** Writes everything that may lag, as for a reader of the log. */
  | { do: "flush" }
  | { do: "pause"; paused: boolean }
  | { do: "crash"; inTurn: boolean };

export type PlannedGroup = {
  calls: PlannedCall[];
  concurrency: number;
  onError: "continue" | "abort";
  onLost: OnLost;
  deadlineMs: number | null;
};

export type Plan = { seed: number; width: number; limits: Limits; steps: Step[] };

/** Histories of up to `stepsMax` steps. With `lying`, upstreams bill up to three times what was reserved. */
export function planArbitrary({ stepsMax, lying }: { stepsMax: number; lying: boolean }): fc.Arbitrary<Plan> {
  return fc.record({
    seed: fc.integer(),
    width: fc.integer({ min: 1, max: 12 }),
    limits: fc.record({
      usd: limit(12_000_000),
      calls: limit(80),
      prompt_tokens: limit(20_000),
      completion_tokens: limit(20_000),
      new_tokens: limit(20_000),
    }),
    steps: fc.array(stepArbitrary(lying ? 3 : 1), { minLength: 1, maxLength: stepsMax, size: "max" }),
  });
}

function limit(max: number): fc.Arbitrary<number | null> {
  const some = fc.noBias(fc.nat({ max }));
  return fc.oneof({ weight: 4, arbitrary: fc.constant(null) }, { weight: 2, arbitrary: some });
}

function stepArbitrary(shareMax: number): fc.Arbitrary<Step> {
  const pick = fc.nat({ max: 999 });
  const at = <T>(weight: number, arbitrary: fc.Arbitrary<T>) => ({ weight, arbitrary });
  return fc.oneof(
    at(3, fc.record({ do: fc.constant("open" as const), ...groupFields })),
    at(1, fc.record({ do: fc.constant("single" as const), call: callArbitrary, onLost })),
    at(
      3,
      fc.record({
        do: fc.constant("call" as const),
        call: callArbitrary,
        delayMs: fc.constantFrom(0, 0, 0, 700),
        onLost,
      }),
    ),
    at(1, fc.record({ do: fc.constant("withdraw" as const), pick })),
    at(
      12,
      fc.record({ do: fc.constant("lane" as const), lane: fc.nat({ max: 3 }), want: fc.integer({ min: 1, max: 6 }) }),
    ),
    at(4, fc.record({ do: fc.constant("worker" as const), pick, want: fc.integer({ min: 1, max: 12 }) })),
    at(16, fc.record({ do: fc.constant("settle" as const), pick, outcome: outcomeArbitrary(shareMax) })),
    at(1, fc.record({ do: fc.constant("settle_again" as const), pick })),
    at(1, fc.record({ do: fc.constant("heartbeat" as const), every: fc.integer({ min: 1, max: 3 }) })),
    at(
      5,
      fc.record({
        do: fc.constant("advance" as const),
        ms: fc.constantFrom(0, 1, 49, 50, 800, 10_000, 30_000, 95_000),
      }),
    ),
    at(2, fc.record({ do: fc.constant("expire" as const) })),
    at(1, fc.record({ do: fc.constant("drain" as const), pick, state: fc.constantFrom("cancelled", "failed") })),
    at(1, fc.record({ do: fc.constant("cancel" as const), pick })),
    at(3, fc.record({ do: fc.constant("gate" as const), gate: fc.constantFrom("wide", "narrow"), mode: gateMode })),
    at(1, fc.record({ do: fc.constant("flush" as const) })),
    at(1, fc.record({ do: fc.constant("pause" as const), paused: fc.boolean() })),
    at(1, fc.record({ do: fc.constant("crash" as const), inTurn: fc.boolean() })),
  );
}

const gateMode = fc.constantFrom(...GATE_MODES);

const onLost = fc.constantFrom<OnLost>("retry", "retry", "fail");

const callArbitrary: fc.Arbitrary<PlannedCall> = fc.record({
  model: fc.oneof(
    { weight: 12, arbitrary: fc.nat({ max: MODELS.length - 2 }) },
    { weight: 1, arbitrary: fc.constant(MODELS.length - 1) },
  ),
  promptBytes: fc.integer({ min: 1, max: 400 }),
  maxTokens: fc.constantFrom(null, 1, 15, 16, 17, 100, 1_000),
  priority: fc.constantFrom<Priority>(0, 1, 2, 2, 2, 3, 4),
  dedupe: fc.constantFrom(null, null, null, 0, 0, 1, 2),
});

const groupFields = {
  calls: fc.oneof(
    { weight: 9, arbitrary: fc.array(callArbitrary, { minLength: 1, maxLength: 12, size: "max" }) },
    { weight: 1, arbitrary: fc.array(callArbitrary, { minLength: 30, maxLength: 70, size: "max" }) },
  ),
  concurrency: fc.integer({ min: 1, max: 8 }),
  onError: fc.constantFrom("continue" as const, "continue" as const, "abort" as const),
  onLost,
  deadlineMs: fc.constantFrom(null, null, null, 800),
};

function outcomeArbitrary(shareMax: number): fc.Arbitrary<PlannedOutcome> {
  const share = fc.oneof(fc.constant(1), fc.double({ min: 0, max: shareMax, noNaN: true }));
  const honest = fc.double({ min: 0, max: 1, noNaN: true });
  const usage = fc.record({
    kind: fc.constant("usage" as const),
    promptShare: share,
    completionShare: share,
    cachedShare: honest,
    costShare: fc.option(share, { freq: 3 }),
  });
  const failure = fc.record({
    kind: fc.constant("failure" as const),
    class: fc.constantFrom<FailureClass>("rejected", "transient", "rate_limited", "unknown"),
    answered: fc.boolean(),
    stop: fc.constantFrom<StopReason | null>(null, null, null, "invalid_key"),
    retryAfterMs: fc.constantFrom(null, null, 0, 500, 40_000, 90_000, 90_001, 3_600_000),
  });
  const noUsage = fc.constant({ kind: "no_usage" as const });
  return fc.oneof(
    { weight: 6, arbitrary: usage },
    { weight: 1, arbitrary: noUsage },
    { weight: 5, arbitrary: failure },
  );
}

/** One of the items; null if there are none. */
export function picked<T>(from: readonly T[], pick: number): T | null {
  return from[pick % Math.max(1, from.length)] ?? null;
}
