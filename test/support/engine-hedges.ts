/** A batch in simulated time whose slow calls may be hedged: one lane executes it, and each attempt takes as long as it is told. */
import { settle } from "../../src/run/steps/settle.ts";
import type { Limits } from "../../src/run/money/ledger.ts";
import type { HedgeRule } from "../../src/call.ts";
import type { Group } from "../../src/run/group/group.ts";
import { nextReadyMs } from "../../src/run/steps/next-ready.ts";
import type { Target } from "../../src/run/leases/shard.ts";
import type { ModelPercentiles } from "../../src/gate/wire.ts";
import { alike, makeTarget, success, TestEngine } from "./engine.ts";

export const P95: HedgeRule = { after: "p95", maxExtra: 0.05 };

export type HedgedBatch = {
  engine: TestEngine;
  group: Group;
  /** By slot: from the start of its first attempt to its end. */
  latenciesMs: number[];
  hedges: number;
  endedAtMs: number;
};

type Options = {
  count: number;
  width: number;
  hedge: HedgeRule | false;
  /** How long an attempt takes: those of the same number may differ from each other. */
  timeOf: (attempt: { index: number; attempt: number; startedAtMs: number }) => number;
  limits?: Partial<Limits>;
  target?: Partial<Target>;
  /** What the gate has said of the calls of all runs. */
  heard?: readonly ModelPercentiles[];
};

/** What one answer is billed: less than is reserved, as with real providers. */
const USAGE = { promptTokens: 40, completionTokens: 60 };

/** Runs a batch to its end. Attempts that are given up end at once. */
export function runHedged({ count, width, hedge, timeOf, limits = {}, target = {}, heard = [] }: Options): HedgedBatch {
  const engine = new TestEngine({ width, limits, targets: [makeTarget(target)] });
  const { state } = engine;
  state.hedges.noteGateLatencies(makeTarget(target).gate, heard);
  const group = engine.open(alike(count, { hedge }));
  const running = new Map<string, { index: number; startedAtMs: number; endsAtMs: number }>();
  const firstStartMs: number[] = [];
  const latenciesMs: number[] = [];
  let hedges = 0;
  let nowMs = 0;
  for (let turns = 0; !group.done; turns++) {
    if (turns > count * 20) throw new Error("the batch makes no progress");
    for (const { lease, index } of engine.slotsStarted(new Map([[0, width]]), nowMs)) {
      const { attemptId, attempt, startedAtMs } = lease;
      firstStartMs[index] ??= nowMs;
      if (lease.hedgeOf !== undefined) hedges += 1;
      running.set(attemptId, { index, startedAtMs, endsAtMs: nowMs + timeOf({ index, attempt, startedAtMs }) });
    }
    const next = [...running].toSorted(([, a], [, b]) => a.endsAtMs - b.endsAtMs)[0];
    const readyMs = nextReadyMs(state, nowMs) ?? Infinity;
    if (next === undefined || readyMs < next[1].endsAtMs) {
      if (readyMs === Infinity) throw new Error("nothing will happen any more");
      nowMs = readyMs;
      continue;
    }
    const [attemptId, { index, startedAtMs, endsAtMs }] = next;
    nowMs = endsAtMs;
    running.delete(attemptId);
    settle(state, attemptId, success(USAGE, endsAtMs - startedAtMs), nowMs);
    for (const aborted of [...state.givenUp.takeOfLanes().values()].flat()) running.delete(aborted);
    latenciesMs[index] = nowMs - (firstStartMs[index] ?? 0);
  }
  return { engine, group, latenciesMs, hedges, endedAtMs: nowMs };
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * share) - 1] ?? 0;
}
