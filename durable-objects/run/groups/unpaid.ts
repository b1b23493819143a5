/** Whether a batch of many calls is refused, before its pages are made and sent: what nobody pays for should cost nobody much. */
import type { Refused } from "../../../src/objects/methods/types.ts";
import type { PricedRequest } from "../../../src/objects/methods/groups.ts";
import { readKind } from "../../../src/run/queue/call-page.ts";
import { floorReason, Floors, hasFloor, type Exhausting, type Priced } from "./floors.ts";
import { refusalOf } from "./open.ts";
import type { RunState } from "../state.ts";

/**
 * Why the opening would refuse these calls by their models, by what is open or by the budget, in the order of the opening; null = it may open
 * them. A key that has opened a group before is its answer, whatever is left of the budget by now.
 */
export function refusalOfBatch(
  run: Pick<RunState, "keyRecord" | "engine" | "openCounts"> & Exhausting & Priced,
  request: PricedRequest,
): Refused | null {
  const { idempotencyKey, kinds, models } = request;
  if (idempotencyKey !== null && run.keyRecord(idempotencyKey) !== null) return null;
  const early = refusalOf(run, request);
  if (early !== null) return { ok: false, reason: early };
  if (!hasFloor(run, { request, graph: null })) return null;
  const floors = new Floors(run);
  for (const kind of kinds) {
    const { slot, count } = readKind(kind, models);
    floors.add(slot, count);
  }
  const unpaid = floorReason(run, { request }, floors.counted);
  return unpaid === null ? null : { ok: false, reason: unpaid };
}
