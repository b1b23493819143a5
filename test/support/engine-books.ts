/** The tests' own books of a run: attempts in flight, charges and ends. They survive a crash of the engine. */
import assert from "node:assert/strict";
import { addAmounts, zeroAmounts, type Limits } from "../../src/run/money/ledger.ts";
import type { Outcome } from "../../src/call.ts";
import type { Assignment } from "../../src/run/steps/dispatch.ts";
import { groupSeqOf } from "../../src/run/queue/slot.ts";
import type { EngineState } from "../../src/run/state.ts";
import { expectedCharge } from "./engine-charge.ts";

/** An attempt in flight, as its executor knows it. */
export type Lent = { assignment: Assignment; callId: string | null };

export class Books {
  /** Attempts in flight, whatever the engine remembers of them. */
  readonly lent = new Map<string, Lent>();
  readonly ended: string[] = [];
  /** Expected charges of the attempts that have ended, and how many overran a reservation under a limit. */
  readonly charged = { spent: zeroAmounts(), attempts: 0, overruns: 0 };
  /** Cost of all attempts of a slot. */
  readonly slotCost = new Map<number, number>();
  /** Slots whose last attempt's answer ended at a learned cap, and how many answers did. */
  readonly short = { slots: new Set<number>(), answers: 0 };
  /** Single calls that ended: the log reports each of them once. */
  readonly callsEnded = new Set<string>();
  readonly #limits: Limits;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  lend(assignment: Assignment): Lent {
    const { attemptId } = assignment.lease;
    assert(!this.lent.has(attemptId), `${attemptId} was lent twice`);
    const lent = { assignment, callId: assignment.executor === null ? assignment.call.callId : null };
    this.lent.set(attemptId, lent);
    return lent;
  }

  /** Enters an attempt's end; `outcome` null = its executor did not report. */
  enter(attemptId: string, { assignment }: Lent, outcome: Outcome | null): void {
    const { charge, overrun } = expectedCharge(assignment, outcome, this.#limits);
    addAmounts(this.charged.spent, charge);
    this.charged.attempts += 1;
    if (overrun) this.charged.overruns += 1;
    this.lent.delete(attemptId);
    this.ended.push(attemptId);
    const { slotId } = assignment.lease;
    if (slotId === null) return;
    this.slotCost.set(slotId, (this.slotCost.get(slotId) ?? 0) + charge.usd);
    this.short.slots.delete(slotId);
    if (assignment.lease.capKind !== "learned" || outcome?.kind !== "success" || outcome.finishReason !== "length")
      return;
    this.short.slots.add(slotId);
    this.short.answers += 1;
  }

  /** A group's attempts in flight. */
  ofGroup(seq: number): [string, Lent][] {
    return [...this.lent].filter(
      ([, { assignment }]) => assignment.executor !== null && groupSeqOf(assignment.slotId) === seq,
    );
  }
}

/** True if a call fails when the outcome of an attempt is unknown. */
export function failsIfLost({ groups }: Pick<EngineState, "groups">, { assignment }: Lent): boolean {
  if (assignment.executor === null) return assignment.call.onLost === "fail";
  return groups.get(groupSeqOf(assignment.slotId))?.header.onLost === "fail";
}
