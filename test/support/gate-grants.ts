/** Grants of gates as tests give them. */
import type { GateGrant } from "../../src/gate/wire.ts";

/** An open gate that knows no limit, unless a test says otherwise. */
export function makeGrant(fields: Partial<GateGrant> = {}): GateGrant {
  const limits = { permits: null, requests: null, tokens: null, waitMs: 0, stop: null };
  return { epoch: 1, class: "open", reason: null, ...limits, ttlMs: 60_000, nextInMs: 10_000, ...fields };
}

/** A chunk of a gate that makes calls wait. */
export function makeChunk(fields: Partial<GateGrant> = {}): GateGrant {
  return makeGrant({ class: "paced", reason: "requests_per_minute", ttlMs: 5_000, nextInMs: 1_000, ...fields });
}

/** The grant of a run that is not the one to probe a key that does not work. */
export function makeStopped(fields: Partial<GateGrant> = {}): GateGrant {
  const stop = { reason: "invalid_key", forMs: 0, message: "no such key" } as const;
  const nothing = { permits: 0, requests: 0, tokens: 0 };
  return makeGrant({ class: "stopped", reason: "stopped", ...nothing, nextInMs: 2_000, stop, ...fields });
}
