/** What hedges may cost: a part of what the calls around them have cost. */
import type { Group } from "../group/group.ts";
import type { AttemptInFlight } from "../leases/shard.ts";
import type { EngineState } from "../state.ts";
import { sumTotals, type ExtraSpend } from "../measures/totals.ts";

type Reserved = Pick<AttemptInFlight, "amounts">;

/** The most that a pair costs beyond a single attempt: one of the two is the call's, whichever is dearer. */
export function extraOf(first: Reserved, second: Reserved): number {
  return Math.max(first.amounts.usd, second.amounts.usd);
}

/** After a restart: what hedges of the whole run have cost counts for each of its groups, for their own part is not stored. */
export function restoreExtra(state: EngineState): void {
  const { extra } = ofRun(state);
  for (const group of state.groups.values()) group.extra = extra;
}

/** Whether one more hedge stays within its fraction, whatever the hedges in flight will cost. Free calls are counted instead. */
export function mayCost(state: EngineState, group: Group, extraNanoUsd: number, maxExtra: number): boolean {
  // A single call that is stored as a group of its own is measured by its run.
  const whole = group.header.single === null ? group : undefined;
  const { spent, extra } = whole === undefined ? ofRun(state) : ofGroup(whole);
  const held = heldBy(state, whole);
  if (extraNanoUsd === 0) return extra.calls + held.calls + 1 <= maxExtra * spent.calls;
  const others = Math.max(0, spent.costNanoUsd - extra.costNanoUsd);
  return extra.costNanoUsd + held.costNanoUsd + extraNanoUsd <= maxExtra * others;
}

type Spend = { spent: ExtraSpend; extra: ExtraSpend };

function ofGroup({ ended, usage, extra }: Group): Spend {
  return { spent: { calls: ended.length, costNanoUsd: usage.costNanoUsd }, extra };
}

function ofRun({ shards }: EngineState): Spend {
  const { attempts: calls, spent, hedges } = sumTotals([...shards.values()].map(({ totals }) => totals));
  return { spent: { calls, costNanoUsd: spent.usd }, extra: hedges ?? { calls: 0, costNanoUsd: 0 } };
}

/** What the hedges in flight may still cost: those of a group, or of the whole run. */
function heldBy(state: EngineState, group: Group | undefined): ExtraSpend {
  const held = { calls: 0, costNanoUsd: 0 };
  for (const [first, second] of state.hedges.pairs) {
    const [one, other] = [state.attempts.get(first)?.lease, state.attempts.get(second)?.lease];
    if (one === undefined || other === undefined || (group !== undefined && state.groupOf(one) !== group)) continue;
    held.calls += 1;
    held.costNanoUsd += extraOf(one, other);
  }
  return held;
}
