/** Calls that reached the upstream more than once: each must be a kill's doing. And how long a restart took to send again. */
import type { Hit } from "./hit.ts";
import type { LoggedAttempt } from "./log.ts";
import type { RunPlan } from "./plan.ts";
import type { Send } from "./provider.ts";

/** Times are ms from the moment at which the gateway was up after the last kill that hit the run; null if there is none. */
export type Resends = {
  /** Calls without an answer at the kills. */
  unanswered: number;
  /** Calls that were answered just before a kill and repeated: their settlement was not written yet. */
  forgotten: number;
  /** The oldest of these answers at its kill, ms. */
  forgottenMsMax: number;
  /** The first call of the run after the restart. */
  firstMs: number | null;
  /** When the last of the attempts in flight at the kill was given up, so that its slot could run again. */
  givenUpMs: number | null;
  /** The last retry of a call that was in flight at the kill: it is queued behind slots that have never run. */
  againMs: number | null;
  /** Longest time without a call from the giving up until the last: what a run that has recovered may not have. */
  pauseMs: number | null;
  faults: string[];
};

/** An answer is written within this, ms, on a machine as busy as this one: an older one may not be forgotten. */
const SETTLED_WITHIN_MS = 5_000;

type Known = { plan: RunPlan; hits: readonly Hit[]; attempts: readonly LoggedAttempt[] };

export function resendsOf(sends: readonly (readonly Send[])[], { plan, hits, attempts }: Known): Resends {
  const found: Resends = {
    unanswered: 0,
    forgotten: 0,
    forgottenMsMax: 0,
    ...recoveryOf(sends, hits, attempts),
    faults: [],
  };
  const lost = new Map<Hit, number>();
  for (const [index, slot] of sends.entries()) {
    for (const [place, send] of slot.entries()) {
      const hit = hits.find(({ overMs }) => send.atMs <= overMs);
      if (hit !== undefined && (send.answeredMs === null || send.answeredMs > hit.atMs)) found.unanswered += 1;
      const next = slot[place + 1];
      if (next !== undefined) noteAgain(found, { index, send, next, hits, lost });
    }
  }
  for (const [, count] of lost) {
    if (count > plan.maxParallel)
      found.faults.push(`after a kill ${count} calls were repeated; at most ${plan.maxParallel} were in flight`);
  }
  return found;
}

function recoveryOf(
  sends: readonly (readonly Send[])[],
  hits: readonly Hit[],
  attempts: readonly LoggedAttempt[],
): Pick<Resends, "firstMs" | "givenUpMs" | "againMs" | "pauseMs"> {
  const hit = hits.at(-1);
  if (hit === undefined) return { firstMs: null, givenUpMs: null, againMs: null, pauseMs: null };
  const after = (slot: readonly Send[]): Send[] => slot.filter(({ atMs }) => atMs > hit.overMs);
  const overAtMs = performance.timeOrigin + hit.overMs;
  const givenUp = attempts.filter(({ outcome, endedAtMs }) => outcome === "unknown" && endedAtMs > overAtMs);
  const since = (upMs: number, times: readonly number[]): number[] => times.map((ms) => Math.max(0, ms - upMs));
  const calls = since(
    hit.upMs,
    sends.flatMap((slot) => after(slot).map(({ atMs }) => atMs)),
  );
  const again = sends.flatMap((slot) => (after(slot).length < slot.length ? after(slot).map(({ atMs }) => atMs) : []));
  const givenUpMs = mostOf(
    since(
      performance.timeOrigin + hit.upMs,
      givenUp.map(({ endedAtMs }) => endedAtMs),
    ),
  );
  const later = givenUpMs === null ? [] : [givenUpMs, ...calls.filter((ms) => ms > givenUpMs)];
  return { firstMs: leastOf(calls), givenUpMs, againMs: mostOf(since(hit.upMs, again)), pauseMs: pauseOf(later) };
}

function pauseOf(times: readonly number[]): number | null {
  const sorted = times.toSorted((a, b) => a - b);
  return mostOf(sorted.slice(1).map((ms, at) => ms - (sorted[at] ?? ms)));
}

function leastOf(times: readonly number[]): number | null {
  return times.length === 0 ? null : Math.min(...times);
}

function mostOf(times: readonly number[]): number | null {
  return times.length === 0 ? null : Math.max(...times);
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
    found.faults.push(`slot ${index} was answered ${ageMs} ms before the kill and repeated`);
}
