/** Calls that reached the upstream more than once: each must be a kill's doing. And how long a restart took to send again. */
import type { RunPlan } from "./plan.ts";
import type { Send } from "./provider.ts";
import type { Hit } from "./audit.ts";

/** Times are ms from the moment the gateway was up again, after the last kill that hit the run; null = nothing to tell. */
export type Resends = {
  /** Calls without an answer at the kills. */
  unanswered: number;
  /** Calls that were answered just before a kill and made again: their settlement was not written yet. */
  forgotten: number;
  /** The oldest of these answers at its kill, ms. */
  forgottenMsMax: number;
  /** The first call after the restart. */
  firstMs: number | null;
  /** The first and the last of the calls that were in flight at the kill and are made again. */
  againMs: { first: number; last: number } | null;
  faults: string[];
};

/** An answer is written within this, ms, on a machine as busy as this one: an older one may not be forgotten. */
const SETTLED_WITHIN_MS = 2_000;

export function resendsOf(
  sends: readonly (readonly Send[])[],
  { plan, hits }: { plan: RunPlan; hits: readonly Hit[] },
): Resends {
  const found: Resends = { unanswered: 0, forgotten: 0, forgottenMsMax: 0, firstMs: null, againMs: null, faults: [] };
  const last = hits.at(-1);
  const lost = new Map<Hit, number>();
  for (const [index, slot] of sends.entries()) {
    for (const [place, send] of slot.entries()) {
      const hit = hits.find(({ overMs }) => send.atMs <= overMs);
      const wasUnanswered = hit !== undefined && (send.answeredMs === null || send.answeredMs > hit.atMs);
      if (wasUnanswered) found.unanswered += 1;
      const next = slot[place + 1];
      if (next !== undefined) noteAgain(found, { index, send, next, hits, lost });
    }
    const first = last === undefined ? undefined : slot.find(({ atMs }) => atMs > last.overMs);
    if (last !== undefined && first !== undefined) {
      const afterMs = Math.max(0, first.atMs - last.upMs);
      found.firstMs = Math.min(found.firstMs ?? Infinity, afterMs);
      if (slot.indexOf(first) > 0) {
        const { first: from, last: to } = found.againMs ?? { first: Infinity, last: 0 };
        found.againMs = { first: Math.min(from, afterMs), last: Math.max(to, afterMs) };
      }
    }
  }
  for (const [, count] of lost) {
    if (count > plan.maxParallel)
      found.faults.push(`a kill had ${count} calls made again, ${plan.maxParallel} may run`);
  }
  return found;
}

type Again = { index: number; send: Send; next: Send; hits: readonly Hit[]; lost: Map<Hit, number> };

function noteAgain(found: Resends, { index, send, next, hits, lost }: Again): void {
  const hit = hits.find(({ overMs }) => send.atMs <= overMs);
  if (hit === undefined || next.atMs <= hit.overMs) {
    found.faults.push(`slot ${index} was sent again without a kill`);
    return;
  }
  lost.set(hit, (lost.get(hit) ?? 0) + 1);
  if (send.answeredMs === null || send.answeredMs > hit.atMs) return;
  found.forgotten += 1;
  const ageMs = hit.atMs - send.answeredMs;
  found.forgottenMsMax = Math.max(found.forgottenMsMax, ageMs);
  if (ageMs > SETTLED_WITHIN_MS)
    found.faults.push(`slot ${index} was answered ${ageMs} ms before the kill and made again`);
}
