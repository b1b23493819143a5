/** Child runs that may wait for room in this run: `wait_ms` of `POST /runs`. */
import { shortForever, shortNow } from "../../../src/run/money/capacity.ts";
import { type Amounts, zeroAmounts } from "../../../src/run/money/ledger.ts";
import { type CapacityShortage, type Reason, shortageText } from "../../../src/errors.ts";
import { CHILDREN_OPEN_MAX, RUN_FULL_RETRY_AFTER_MS } from "../../../src/limits.ts";
import type { CapacityWait, RunInput } from "../../../src/objects/methods/runs.ts";
import type { IdempotencyKey } from "../../../src/objects/methods/types.ts";
import type { RunState } from "../state.ts";
import { inherit } from "./inherit.ts";
import { addChild, childUnderKey, type Added } from "./open-child.ts";

/** A request for a child run that may wait. */
export type CapacityRequest = {
  input: RunInput;
  id: string;
  idempotencyKey: IdempotencyKey | null;
  wait: CapacityWait;
};

/** What waiting needs of the run object. */
export type CapacityDeps = {
  now: () => number;
  /** Does something in a turn of the run; the refusal if the run may not start anything. */
  inTurn: (attempt: (run: RunState, nowMs: number) => Added) => Promise<Added>;
  /** Resolves when `ready` or when `waitMs` are over. */
  until: (ready: () => boolean, waitMs: number) => Promise<void>;
  /** The run, or why it may not start anything. */
  active: () => RunState | Reason;
};

/** Opens the child once there is room, or says why there was none when its time is over. */
export async function openWhenFree(deps: CapacityDeps, request: CapacityRequest): Promise<Added> {
  const { id, wait } = request;
  const untilMs = deps.now() + wait.waitMs;
  let isFirstTry = true;
  for (;;) {
    // A request that was withdrawn while it waited must not open a child that nobody knows of.
    const mustWait = !isFirstTry;
    isFirstTry = false;
    const added = await deps.inTurn((run, nowMs) =>
      mustWait && run.capacityQueue.needOf(id) === null ? withdrawn() : tryToOpen(run, request, nowMs),
    );
    if (added.ok || added.reason.reason !== "no_capacity") return added;
    const leftMs = untilMs - deps.now();
    if (leftMs <= 0) {
      const run = deps.active();
      if (!("reason" in run)) run.capacityQueue[wait.isLast ? "leave" : "callEnded"](id, deps.now());
      return added;
    }
    await deps.until(() => isWorthATry(deps, id), leftMs);
  }
}

function withdrawn(): Added {
  return { ok: false, reason: { reason: "cancelled", message: "the request for a child run was withdrawn" } };
}

/** Whether another try could end otherwise than the last. */
function isWorthATry({ active, now }: CapacityDeps, id: string): boolean {
  const run = active();
  if ("reason" in run) return true;
  const { capacityQueue: queue, engine, children } = run;
  const need = queue.needOf(id);
  if (need === null || shortForever(need, engine.ledger).length > 0) return true;
  return queue.isFirst(id, now()) && !children.full && engine.ledger.shortfall(need) === null;
}

/** Opens the child if there is room for it beside all requests that wait longer; else it waits from now on, if it may. */
function tryToOpen(run: RunState, { input, id, idempotencyKey, wait }: CapacityRequest, nowMs: number): Added {
  const { children, engine, settings, capacityQueue: queue } = run;
  const before = idempotencyKey === null ? null : childUnderKey(run, idempotencyKey);
  if (before !== null) return left(run, id, before);
  // The reply to an earlier call of the same request was lost.
  if (wait.isRepeated && children.isKnown(id)) return left(run, id, { ok: true, id, settings: null });
  const inherited = inherit({ settings, ledger: engine.ledger, siblings: children.equalShares }, input, { id, nowMs });
  if (!inherited.ok && inherited.reservation === undefined) return left(run, id, inherited);
  const need = inherited.reservation ?? zeroAmounts();

  const forever = shortForever(need, engine.ledger);
  if (forever.length > 0) return left(run, id, { ok: false, reason: infeasibleReason(forever) });
  const short = shortagesOf(run, { id, need }, nowMs);
  if (short.length === 0) return left(run, id, addChild(run, input, { id, idempotencyKey }, nowMs));
  const reason: Reason = { reason: "no_capacity", waitedMs: queue.waitedMs(id, nowMs), reasons: short };
  if (wait.waitMs > 0 && !queue.wait(id, need, nowMs)) {
    const message = "too many requests wait for room for a child run";
    return { ok: false, reason: { reason: "overloaded", message, retryAfterMs: RUN_FULL_RETRY_AFTER_MS } };
  }
  return { ok: false, reason };
}

function left(run: RunState, id: string, added: Added): Added {
  run.capacityQueue.leave(id);
  return added;
}

function shortagesOf(run: RunState, { id, need }: { id: string; need: Amounts }, nowMs: number): CapacityShortage[] {
  const ahead = run.capacityQueue.ahead(id, nowMs);
  const short = shortNow(need, ahead.need, run.engine.ledger);
  const places = Math.max(0, CHILDREN_OPEN_MAX - run.children.openCount - ahead.count);
  if (places === 0) short.push({ what: "child_runs", requested: 1, available: 0, limit: CHILDREN_OPEN_MAX });
  return short;
}

function infeasibleReason(reasons: readonly CapacityShortage[]): Reason {
  const message = `this child run can never fit its parent: ${reasons.map(shortageText).join("; ")}`;
  return { reason: "infeasible", message, reasons };
}
