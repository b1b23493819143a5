/** Makers for tests of the engine: targets, facts, outcomes, and an engine whose stored facts are in a map. */
import type { TimesOfCall } from "../../src/run/measures/totals.ts";
import { ANY_TOKENS } from "../../src/run/money/estimate.ts";
import { Ledger, NO_LIMITS, type Limits } from "../../src/run/money/ledger.ts";
import type { TokenPrice } from "../../src/run/money/token-price.ts";
import type { FailureClass, Outcome, Usage } from "../../src/call.ts";
import { dispatch, type Assignment, type Dispatched } from "../../src/run/steps/dispatch.ts";
import { startHedges } from "../../src/run/steps/start-hedges.ts";
import type { Group, GroupHeader } from "../../src/run/group/group.ts";
import { enqueueCall, enqueueSlots } from "../../src/run/steps/enqueue.ts";
import type { Position, Target } from "../../src/run/leases/shard.ts";
import { groupSeqOf, indexOf, slotIdOf, type SlotFacts } from "../../src/run/queue/slot.ts";
import { EngineState, type EngineDeps } from "../../src/run/state.ts";

/** 1 nano-USD per prompt token and 2 per completion token: sums that a reader can check. */
export const PLAIN_PRICE: TokenPrice = { inputPicoUsd: 1_000, cachedInputPicoUsd: 1_000, outputPicoUsd: 2_000 };

export function makeTarget(fields: Partial<Target> = {}): Target {
  const limits = { bounds: ANY_TOKENS, allowParams: [], maxInFlight: 512, timeoutMs: 60_000, attemptsMax: 3 };
  const { upstream = "acme", gate = upstream } = fields;
  return { upstream, gate, model: "gpt-x", price: PLAIN_PRICE, ...limits, ...fields };
}

export function makeFacts(fields: Partial<SlotFacts> = {}): SlotFacts {
  const options = { model: null, modelIndex: 0, maxTokens: 100, priority: 2, timeoutMs: null } as const;
  return { promptBytes: 92, messageCount: 1, mediaParts: 0, ...options, ...fields };
}

/** The fields of a single call that a test may set. */
type CallFields = Partial<SlotFacts> & {
  attempt?: number;
  delayMs?: number;
  deadlineMs?: number | null;
  onLost?: "retry" | "fail";
  waitsForGate?: boolean;
  waitsForWidthUntilMs?: number;
  uncounted?: number;
  earlier?: TimesOfCall;
  position?: Position;
  parallelGroupId?: string | null;
};

export function makeHeader(fields: Partial<GroupHeader> = {}): GroupHeader {
  const rules = { concurrency: 512, onLost: "retry", single: null } as const;
  const bounds = { share: null, deadlineMs: null, models: [null] };
  return { seq: 1, id: "pg-0000000000000-000001", count: 1, openedAtMs: 0, ...rules, ...bounds, ...fields };
}

export function success(usage: Partial<Usage> | null = {}, latencyMs = 10): Outcome {
  const zero = { promptTokens: 0, completionTokens: 0, cachedTokens: 0, reasoningTokens: 0, costNanoUsd: null };
  const reported = usage === null ? null : { ...zero, ...usage };
  return { kind: "success", text: "ok", model: "gpt-x-2026", finishReason: "stop", usage: reported, latencyMs };
}

/** A failure; by default the upstream has answered. */
export function failure(
  failureClass: FailureClass,
  retryAfterMs: number | null = null,
  latencyMs = 10,
  answered = true,
): Outcome {
  const reason = { reason: "upstream_error", upstream: "acme", status: 500, message: "no", retryable: true } as const;
  return { kind: "failure", class: failureClass, reason, answered, retryAfterMs, latencyMs };
}

type Options = {
  limits?: Partial<Limits>;
  width?: number;
  windowMs?: number;
  random?: () => number;
  /** By a slot's `modelIndex`; null = the configuration does not have it. */
  targets?: readonly (Target | null)[];
  bodyOf?: EngineDeps["bodyOf"];
  isAway?: EngineDeps["isAway"];
  /** Whether gates decide for all runs; absent = the run decides alone. */
  hasGates?: boolean;
};

/** An engine with stored slots, and lanes with the offers that a test names. */
export class TestEngine {
  readonly state: EngineState;
  readonly targets: readonly (Target | null)[];
  readonly #facts = new Map<number, SlotFacts>();

  constructor({ limits = {}, width = 512, windowMs = 50, random = () => 0, ...options }: Options = {}) {
    const { targets = [makeTarget()], bodyOf, isAway, hasGates = false } = options;
    this.targets = targets;
    const ledger = new Ledger({ ...NO_LIMITS, ...limits });
    this.state = new EngineState(
      { ledger, width, windowMs, hasGates },
      {
        random,
        factsOf: (slotId) => this.#facts.get(slotId) ?? makeFacts(),
        targetOf: (_, modelIndex) => this.targets[modelIndex] ?? null,
        ...(bodyOf === undefined ? {} : { bodyOf }),
        ...(isAway === undefined ? {} : { isAway }),
      },
    );
  }

  /** Opens a group of the given slots under the next number, and queues them. */
  open(slots: readonly Partial<SlotFacts>[], fields: Partial<GroupHeader> = {}): Group {
    const seq = fields.seq ?? this.state.groups.size + 1;
    const group = this.state.openGroup(makeHeader({ ...fields, seq, count: slots.length }));
    const facts = slots.map((slot) => makeFacts(slot));
    facts.forEach((fact, index) => this.#facts.set(slotIdOf(seq, index), fact));
    enqueueSlots(this.state, group, 0, facts);
    return group;
  }

  /** Queues a single call. */
  call(callId: string, nowMs: number, fields: CallFields = {}): void {
    const { attempt = 1, delayMs = 0, deadlineMs = null, onLost = "retry", ...rest } = fields;
    const {
      waitsForGate = deadlineMs !== null,
      uncounted = 0,
      position,
      parallelGroupId = null,
      waitsForWidthUntilMs,
      earlier,
      ...facts
    } = rest;
    const target = this.targets[facts.modelIndex ?? 0];
    if (target == null) throw new Error("a single call needs a target");
    const call = {
      callId,
      attempt,
      facts: makeFacts(facts),
      target,
      deadlineMs,
      onLost,
      waitsForGate,
      uncounted,
      parallelGroupId,
      ...(earlier === undefined ? {} : { earlier }),
      ...(waitsForWidthUntilMs === undefined ? {} : { waitsForWidthUntilMs }),
      ...(position === undefined ? {} : { position }),
    };
    enqueueCall(this.state, call, delayMs, nowMs);
  }

  /** One turn of dispatch with one waiting lane per number: how many attempts each takes. */
  turn(wants: readonly number[], nowMs: number): Dispatched {
    return dispatchAll(this.state, new Map(wants.entries()), nowMs);
  }

  /** The slots that a turn starts for the waiting lanes, by their index in their group. */
  slotsStarted(offers: Map<number, number>, nowMs: number): { lease: Assignment["lease"]; index: number }[] {
    const { assignments } = dispatchAll(this.state, offers, nowMs);
    return assignments.flatMap((each) =>
      each.executor === null ? [] : [{ lease: each.lease, index: indexOf(each.slotId) }],
    );
  }

  /** The attempts that a turn with ample lanes starts, by what they are for. */
  startAll(nowMs: number): string[] {
    return this.turn([512], nowMs).assignments.map(nameOf);
  }
}

/** What a turn of the run object starts. */
function dispatchAll(state: EngineState, offers: Map<number, number>, nowMs: number): Dispatched {
  const hedges = startHedges(state, offers, nowMs);
  const dispatched = dispatch(state, offers, nowMs);
  dispatched.assignments.push(...hedges);
  return dispatched;
}

/** `group:index` of a slot's attempt, the call's id of a single one. */
export function nameOf(assignment: Assignment): string {
  if (assignment.executor === null) return assignment.call.callId;
  return `${groupSeqOf(assignment.slotId)}:${indexOf(assignment.slotId)}`;
}

/** `count` slots that are alike. */
export function alike(count: number, fields: Partial<SlotFacts> = {}): Partial<SlotFacts>[] {
  return Array.from({ length: count }, () => fields);
}

/** Deterministic numbers, uniform in [0, 1), for whatever must look random (xorshift32). */
export function seeded(seed: number): () => number {
  let word = seed | 0 || 1;
  return () => {
    word ^= word << 13;
    word ^= word >>> 17;
    word ^= word << 5;
    return (word >>> 0) / 2 ** 32;
  };
}
