/**
 * One gate. Its methods are described in src/run-api/gate-api.ts, what it decides in src/gate. It sets no alarm and no timer:
 * runs that wait come back by themselves, so it sleeps as soon as nobody calls.
 *
 *   memory  one row: a stop, the learned width, the limits that headers have shown
 */
import { DurableObject } from "cloudflare:workers";
import { configOf } from "../../src/env.ts";
import { Gate } from "../../src/gate/gate.ts";
import { shouldStore } from "../../src/gate/memory.ts";
import type { GateSettings } from "../../src/gate/settings.ts";
import type { GateGrant, GateReport, GateStatus } from "../../src/gate/wire.ts";
import { UPSTREAM_IN_FLIGHT_DEFAULT } from "../../src/limits.ts";
import type { GateApi } from "../../src/run-api/gate-api.ts";
import type { Objects } from "../address.ts";
import { GateStore } from "./store.ts";

export class GateObject extends DurableObject<Objects> implements GateApi {
  readonly #name: string;
  readonly #row: GateStore;
  readonly #gate: Gate;
  #storedMs: number;

  constructor(ctx: DurableObjectState, env: Objects) {
    super(ctx, env);
    const nowMs = Date.now();
    this.#name = ctx.id.name ?? "";
    this.#row = new GateStore(ctx.storage.sql);
    this.#storedMs = nowMs;
    const epoch = 1 + Math.floor(Math.random() * (Number.MAX_SAFE_INTEGER - 1));
    this.#gate = new Gate(settingsOf(env, this.#name), epoch, this.#row.stored, nowMs);
  }

  exchange(report: GateReport): GateGrant {
    const nowMs = Date.now();
    const grant = this.#gate.exchange(report, nowMs);
    this.#store(nowMs);
    return grant;
  }

  leave(run: string): void {
    this.#gate.leave(run);
  }

  status(): GateStatus {
    return this.#gate.status(Date.now());
  }

  resume(): boolean {
    const nowMs = Date.now();
    const wasStopped = this.#gate.resume();
    if (wasStopped) this.#store(nowMs);
    return wasStopped;
  }

  /** Stores what must survive a restart. */
  #store(nowMs: number): void {
    const memory = this.#gate.memory();
    if (!shouldStore(this.#row.stored, memory, nowMs - this.#storedMs)) return;
    this.#row.store(memory);
    this.#storedMs = nowMs;
  }
}

/** The settings of a gate's upstream; of one that is not configured any more, the defaults. */
function settingsOf(env: Objects, gate: string): GateSettings {
  const parsed = configOf(env);
  const name = gate.split("#")[0];
  const upstream = parsed.ok ? parsed.config.upstreams.find((one) => one.name === name) : undefined;
  return {
    adaptive: upstream?.adaptive ?? { mode: "aimd" },
    maxInFlight: upstream?.maxInFlight ?? UPSTREAM_IN_FLIGHT_DEFAULT,
  };
}
