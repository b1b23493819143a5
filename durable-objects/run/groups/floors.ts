/** Whether a group that is about to open can be paid for, by the least that its slots can cost. */
import {
  floorOf,
  floorWith,
  infeasibleReason,
  unpaidReason,
  type SlotFloors,
} from "../../../src/run/money/feasible.ts";
import { zeroAmounts } from "../../../src/run/money/ledger.ts";
import { isAlike } from "../../../src/run/queue/alike.ts";
import { readFacts } from "../../../src/run/queue/call-page.ts";
import type { SlotFacts } from "../../../src/run/queue/slot.ts";
import type { Reason } from "../../../src/errors.ts";
import type { CompiledGraph } from "../../../src/run/graph/types.ts";
import { SLICE_PIECE_CHARS, UNPAID_CALLS_MAX } from "../../../src/limits.ts";
import type { FloorReply, FloorRequest, OpenGroupRequest } from "../../../src/objects/methods/groups.ts";
import type { RunSettings } from "../../../src/objects/methods/runs.ts";
import { SliceCount, type Sliced } from "../../../src/text/bytes/slices.ts";
import type { RunState } from "../state.ts";
import type { ModelTargets } from "../targets.ts";

/** What floors are counted by: the prices of models, and the answers that are recorded already. */
export type Priced = ModelTargets & { readonly replay: { hasAnswer: (facts: SlotFacts) => boolean } | null };

type Asked = {
  request: Pick<OpenGroupRequest, "onBudget" | "count" | "single" | "onExhausted">;
  graph: CompiledGraph | null;
};

/** What of a run's settings says what a group does when its budget is used up. */
export type Exhausting = { settings: Pick<RunSettings, "onExhausted"> };

/** Whether a group is refused if it cannot be paid for, and so which of its slots are counted: all, or none. */
export function hasFloor(run: Exhausting, { request, graph }: Asked): boolean {
  if (request.onBudget === "refuse") return true;
  // A graph's calls are started one after another, and those of a group that pauses wait for a higher limit.
  return graph === null && request.count > UNPAID_CALLS_MAX && !mayPause(run, request);
}

/** Why the budget can never pay for a group with these floors, or for hardly any of its calls; null = it may open. */
export function floorReason(
  { engine }: Pick<RunState, "engine">,
  { request }: { request: Pick<OpenGroupRequest, "onBudget"> },
  floors: readonly SlotFloors[],
): Reason | null {
  return request.onBudget === "refuse"
    ? infeasibleReason(floorWith(zeroAmounts(), floors), engine.ledger)
    : unpaidReason(floors, engine.ledger);
}

/**
 * Adds pages to the floor of a batch that is on its way, in slices. A key that has opened a group before is its answer, whatever is left
 * of the budget by now. The opening refuses models that do not resolve.
 */
export function* addFloor(
  run: Pick<RunState, "keyRecord" | "engine"> & Priced,
  { floor, models, facts, idempotencyKey }: FloorRequest,
): Sliced<FloorReply> {
  if (idempotencyKey !== null && run.keyRecord(idempotencyKey) !== null) return { ok: true, floor };
  const slice = new SliceCount();
  const floors = new Floors(run);
  for (const page of facts) {
    const slots = readFacts(page, models);
    for (const slot of slots) floors.add(slot);
    if (slice.add(page.length + slots.length * SLICE_PIECE_CHARS)) yield;
  }
  const more = floorWith(floor, floors.counted);
  const reason = infeasibleReason(more, run.engine.ledger);
  return reason === null ? { ok: true, floor: more } : { ok: false, reason };
}

/** Whether a group waits for a higher limit when the budget is used up. A single call has a client that waits for an answer. */
export function mayPause(
  { settings }: Exhausting,
  { single, onExhausted }: Pick<OpenGroupRequest, "single" | "onExhausted">,
): boolean {
  return !single && (onExhausted ?? settings.onExhausted) === "pause";
}

/** The least that the slots of a group that is not open can cost; nothing of a model that does not resolve. */
export class Floors {
  readonly #run: Priced;
  readonly #shared = new Set<string>();
  #last: { facts: SlotFacts; floors: SlotFloors } | null = null;
  /** Floors of slots, in order: those of alike ones in a row are counted as one. */
  readonly counted: SlotFloors[] = [];

  constructor(run: Priced) {
    this.#run = run;
  }

  /** Adds so many slots with the same facts. */
  add(facts: SlotFacts, count = 1): void {
    const { dedupeKey } = facts;
    // It gets the answer of an equal one before it.
    if (dedupeKey !== undefined && this.#shared.has(dedupeKey)) return;
    if (this.#last !== null && isAlike(this.#last.facts, facts)) return void (this.#last.floors.count += count);
    const target = this.#run.targets.resolve(facts.model);
    // A tool costs nothing.
    if (this.#run.replay?.hasAnswer(facts) === true || "reason" in target || target.tool !== undefined) return;
    const amounts = floorOf({ facts, price: target.price, bounds: target.bounds });
    const floors = { amounts, count };
    this.#last = { facts, floors };
    this.counted.push(floors);
    if (dedupeKey !== undefined) this.#shared.add(dedupeKey);
  }
}
