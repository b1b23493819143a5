/**
 * What the replies and requests of all objects share. Everything in this folder crosses the RPC surface of an object:
 * plain data only, made of strings, numbers, booleans, null, arrays and objects.
 */
import type { Reason } from "../../errors.ts";
import type { RateSample } from "../../gate/wire.ts";

/** USD left in the run's budget when the reply was made, in nano-USD; null = no limit. */
export type Remaining = { remainingNanoUsd: number | null };

export type Refused = { ok: false; reason: Reason };

/** A client's Idempotency-Key, and the hash of the request that it names: its path and its body. */
export type IdempotencyKey = { key: string; hash: string };

/** Rate limits of keys as their headers showed them, by gate; absent = none were read. A settlement of any run brings them. */
export type Sampled = { samples?: Record<string, RateSample> };
