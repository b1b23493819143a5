/** One gate. Its methods are described in src/run-api/gate-api.ts, what it decides in src/gate. */
import { DurableObject } from "cloudflare:workers";
import type { GateGrant, GateReport, GateStatus } from "../../src/gate/wire.ts";
import { GATE_OPEN_NEXT_MS, GATE_OPEN_TTL_MS } from "../../src/limits.ts";
import type { GateApi } from "../../src/run-api/gate-api.ts";

export class GateObject extends DurableObject<object> implements GateApi {
  readonly #epoch = 1 + Math.floor(Math.random() * Number.MAX_SAFE_INTEGER);

  exchange(_report: GateReport): GateGrant {
    return {
      epoch: this.#epoch,
      class: "open",
      reason: null,
      permits: null,
      requests: null,
      tokens: null,
      waitMs: 0,
      ttlMs: GATE_OPEN_TTL_MS,
      nextInMs: GATE_OPEN_NEXT_MS,
      stop: null,
    };
  }

  leave(_run: string): void {
    // Nothing is held by runs of an open gate.
  }

  status(): GateStatus {
    return {
      epoch: this.#epoch,
      class: "open",
      reason: null,
      width: null,
      inFlight: 0,
      permits: null,
      buckets: {},
      waiting: 0,
      runs: 0,
      waitMs: 0,
      stop: null,
      lastError: null,
    };
  }

  resume(): boolean {
    return false;
  }
}
