/** The refusal of a call whose request is not on the tape: it says how the nearest recorded request differs. */
import type { Reason } from "../errors.ts";
import { differenceLines, differences, distance } from "./differences.ts";
import type { TapedRequest } from "./types.ts";

/** A recorded request that is compared; `number`: its place on the tape, from 1. */
export type Candidate = { number: number; request: TapedRequest };

type Miss = Extract<Reason, { reason: "cassette_miss" }>;

/** The nearest of several requests, and where it differs; null = there are none. */
export function nearest(
  requested: TapedRequest,
  candidates: readonly Candidate[],
): { number: number; differences: string[] } | null {
  let best: { number: number; found: ReturnType<typeof differences>; far: number } | null = null;
  for (const { number, request } of candidates) {
    const found = differences(request, requested);
    const far = distance(found);
    if (best === null || far < best.far) best = { number, found, far };
  }
  return best === null ? null : { number: best.number, differences: differenceLines(best.found) };
}

/** Why a call gets no answer from a tape. `had`: how many answers to this request the run has already received. */
export function missReason(tape: string, size: number, had: number, near: ReturnType<typeof nearest>): Miss {
  const facts = { tape, nearest: near?.number ?? null, differences: near?.differences ?? [] };
  if (had > 0) {
    const times = had === 1 ? "one answer" : `${had} answers`;
    const message = `the tape "${tape}" has ${times} to this request, and the run has already received ${had === 1 ? "it" : "all of them"}`;
    return { reason: "cassette_miss", message, ...facts };
  }
  const head = `the tape "${tape}" has no answer to this request`;
  if (size === 0)
    return {
      reason: "cassette_miss",
      message: `${head}: the tape is empty; record it, or load it from a file`,
      ...facts,
    };
  if (near === null) return { reason: "cassette_miss", message: head, ...facts };
  const message = `${head}; the nearest recorded request is number ${near.number}, which differs in ${near.differences.join("; ")}`;
  return { reason: "cassette_miss", message, ...facts };
}
