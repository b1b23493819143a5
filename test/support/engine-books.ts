/** An account of a run beside its engine's: what was lent, charged and ended. No crash of the engine touches it. */
import assert from "node:assert/strict";
import { addAmounts, zeroAmounts, type Limits } from "../../src/budget/ledger.ts";
import type { Outcome } from "../../src/call.ts";
import type { Assignment } from "../../src/engine/dispatch.ts";
import { groupSeqOf } from "../../src/engine/slot.ts";
import type { EngineState } from "../../src/engine/state.ts";
import { expectedCharge } from "./engine-charge.ts";

/** An attempt as its executor knows it. */
export type Lent = { assignment: Assignment; callId: string | null };

export class Books {
  /** Attempts in flight, whatever the engine remembers of them. */
  readonly lent = new Map<string, Lent>();
  readonly ended: string[] = [];
  /** Sum of what the attempts that ended must have cost, and how many overran a limit's reservation. */
  readonly charged = { spent: zeroAmounts(), attempts: 0, overruns: 0 };
  /** What each slot's attempts cost together. */
  readonly slotCost = new Map<number, number>();
  /** Single calls that ended otherwise than by their client's leaving: the log must say so, once. */
  readonly callsEnded = new Set<string>();
  readonly #limits: Limits;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  lend(assignment: Assignment): Lent {
    const { attemptId } = assignment.lease;
    assert(!this.lent.has(attemptId), `${attemptId} was lent twice`);
    const lent = { assignment, callId: assignment.lane === null ? assignment.call.callId : null };
    this.lent.set(attemptId, lent);
    return lent;
  }

  /** Enters an attempt's end; `outcome` null = nobody reported. */
  enter(attemptId: string, { assignment }: Lent, outcome: Outcome | null): void {
    const { charge, overrun } = expectedCharge(assignment, outcome, this.#limits);
    addAmounts(this.charged.spent, charge);
    this.charged.attempts += 1;
    if (overrun) this.charged.overruns += 1;
    this.lent.delete(attemptId);
    this.ended.push(attemptId);
    const { slotId } = assignment.lease;
    if (slotId !== null) this.slotCost.set(slotId, (this.slotCost.get(slotId) ?? 0) + charge.usd);
  }

  /** What is lent of a group. */
  ofGroup(seq: number): [string, Lent][] {
    return [...this.lent].filter(
      ([, { assignment }]) => assignment.lane !== null && groupSeqOf(assignment.slotId) === seq,
    );
  }
}

/** Whether a call's rule is to fail when nobody knows what became of an attempt. */
export function failsIfLost({ groups }: Pick<EngineState, "groups">, { assignment }: Lent): boolean {
  if (assignment.lane === null) return assignment.call.onLost === "fail";
  return groups.get(groupSeqOf(assignment.slotId))?.header.onLost === "fail";
}
