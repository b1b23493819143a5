/** What handlers find in their context. */
import type { Objects } from "../objects/address.ts";
import type { Hold } from "../text/bytes/held-bytes.ts";
import type { Route } from "../contract/routes/record.ts";
import type { Bindings, Config } from "../env.ts";
import type { LeavingSignal } from "../call.ts";

/**
 * Who sent the request. The operator may do everything; a run acts for itself and its descendants; a viewer reads the figures of
 * all runs, on the routes that the table opens for viewers.
 */
export type Principal =
  | { kind: "operator" }
  | { kind: "viewer" }
  | { kind: "run"; runId: string; depth: number; records?: true; traceId?: string };

/** Key material, made once per configuration. */
export type Keys = {
  /** SHA-256 of the operator's key. */
  adminDigest: Uint8Array;
  /** SHA-256 of the viewers' key; null = there is none. */
  viewDigest: Uint8Array | null;
  /** Signs new tokens. */
  signing: CryptoKey;
  /** A token is valid if one of these signed it; `signing` is the first. */
  accepted: readonly CryptoKey[];
};

/** `requestId` and `acceptedAtMs` are set on every request; the rest once `authenticate` has let it pass. */
export type AppEnv = {
  Bindings: Bindings & Objects;
  Variables: {
    requestId: string;
    /** When the request arrived, epoch ms: before it was read, less the time for which this instance stood still. */
    acceptedAtMs: number;
    /** The record of the route that answers; set before its other middleware. */
    route: Route;
    config: Config;
    keys: Keys;
    principal: Principal;
    /** Whether its client has left, on routes that take a body. */
    client: LeavingSignal;
    /** The memory that the request's body takes, on routes that take one. */
    bodyHold: Hold;
    /** USD left in the run's budget by the run object's last reply, for the answer's header: nano-USD, null = no limit. */
    remainingNanoUsd: number | null;
    /** Whether the answer has the headers that name its request and its run: then nobody need look for them. */
    isNamed: boolean;
    /** Where the spans of what the request asks for are exported; `traceId` null = in the run's own trace. Unset = unknown, or there are none. */
    spans: { runId: string; traceId: string | null };
  };
};
