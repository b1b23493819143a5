/** Whether a group that is about to open can be paid for, by the least that its slots can cost. */
import { floorOf, floorWith, infeasibleReason, unpaidReason, type SlotFloor } from "../../../src/run/money/feasible.ts";
import { zeroAmounts, type Amounts } from "../../../src/run/money/ledger.ts";
import { readFacts } from "../../../src/run/queue/call-page.ts";
import type { SlotFacts } from "../../../src/run/queue/slot.ts";
import type { Reason } from "../../../src/errors.ts";
import type { CompiledGraph } from "../../../src/run/graph/types.ts";
import { UNPAID_CALLS_MAX } from "../../../src/limits.ts";
import type { FloorReply, FloorRequest, OpenGroupRequest } from "../../../src/objects/methods/groups.ts";
import type { RunState } from "../state.ts";

/** `parts`: the facts of its calls, in order; they may be read again. */
type Asked = {
  request: OpenGroupRequest;
  graph: CompiledGraph | null;
  parts: () => readonly Iterable<{ facts: string }>[];
};

/** Why the budget can never pay for a group, or for hardly any of its calls; null = it may open. All its models resolve. */
export function floorReason(run: RunState, { request, graph, parts }: Asked): Reason | null {
  const { ledger } = run.engine;
  if (request.onBudget === "refuse")
    return infeasibleReason(floorWith(zeroAmounts(), floorsOf(run, request.models, parts())), ledger);
  // A graph's calls are started one after another, and those of a group that pauses wait for a higher limit.
  const isTried = graph === null && request.count > UNPAID_CALLS_MAX && !mayPause(run, request);
  return isTried ? unpaidReason(floorsOf(run, request.models, parts()), ledger) : null;
}

/**
 * Adds pages to the floor of a batch that is on its way. A key that has opened a group before is its answer, whatever is left of the
 * budget by now. The opening refuses models that do not resolve.
 */
export function addFloor(run: RunState, { floor, models, facts, idempotencyKey }: FloorRequest): FloorReply {
  if (idempotencyKey !== null && run.keyRecord(idempotencyKey) !== null) return { ok: true, floor };
  const pages = facts.map((each) => ({ facts: each }));
  const more = floorWith(floor, floorsOf(run, models, [pages]));
  const reason = infeasibleReason(more, run.engine.ledger);
  return reason === null ? { ok: true, floor: more } : { ok: false, reason };
}

/** Whether a group waits for a higher limit when the budget is used up. A single call has a client that waits for an answer. */
export function mayPause({ settings }: RunState, { single, onExhausted }: OpenGroupRequest): boolean {
  return !single && (onExhausted ?? settings.onExhausted) === "pause";
}

/** The least that the slots of a group that is not open can cost; nothing of a model that does not resolve. */
function* floorsOf(
  run: RunState,
  models: readonly (string | null)[],
  parts: readonly Iterable<{ facts: string }>[],
): Generator<SlotFloor> {
  const shared = new Set<string>();
  let last: { facts: SlotFacts; floor: Amounts } | null = null;
  for (const part of parts) {
    for (const page of part) {
      for (const facts of readFacts(page.facts, models)) {
        if (last === null || !costsAs(last.facts, facts)) {
          const target = run.targets.resolve(facts.model);
          // A tool costs nothing.
          if (run.replay?.hasAnswer(facts) === true || "reason" in target || target.tool !== undefined) continue;
          last = { facts, floor: floorOf({ facts, price: target.price, bounds: target.bounds }) };
        }
        const { dedupeKey } = facts;
        const isShared = dedupeKey !== undefined && shared.has(dedupeKey);
        if (dedupeKey !== undefined) shared.add(dedupeKey);
        yield { amounts: last.floor, isShared };
      }
    }
  }
}

/** Whether the floor of a call is that of another one, without a look at all of it: copies are one object, and many calls are plain and alike. */
function costsAs(known: SlotFacts, facts: SlotFacts): boolean {
  if (known === facts) return true;
  for (const name of PLAIN) if (known[name] !== facts[name]) return false;
  return Object.keys(known).length === PLAIN_FIELDS && Object.keys(facts).length === PLAIN_FIELDS;
}

const PLAIN = ["promptBytes", "messageCount", "model", "maxTokens", "mediaParts", "priority", "timeoutMs"] as const;
/** Those, and the number of the model. */
const PLAIN_FIELDS = PLAIN.length + 1;
