/**
 * One gate. Its methods are described in src/objects/methods/gate-api.ts, what it decides in src/gate. It sets no alarm and no timer:
 * runs that wait come back by themselves, so it sleeps as soon as nobody calls.
 *
 *   memory   row 1: a stop, a long Retry-After, the learned width, the limits that headers have shown; row 2: what attempts of all
 *            runs have cost; row 3: how long they take
 *   metered  what of it each run has counted
 *   unread   the runs that may have counted more
 */
import { DurableObject } from "cloudflare:workers";
import { configOf } from "../../src/env.ts";
import { Gate } from "../../src/gate/gate.ts";
import { shouldStore } from "../../src/gate/memory.ts";
import type { MeterSheet } from "../../src/gate/meter.ts";
import { GateMeters, type BroughtMeter } from "../../src/gate/meters.ts";
import type { GateSettings } from "../../src/gate/settings.ts";
import type { GateClass, GateGrant, GateReport, GateStatus } from "../../src/gate/wire.ts";
import {
  GATE_LATENCY_STORE_EVERY_MS,
  GATE_NEXT_MAX_MS,
  GATE_NOTICES_MAX,
  UPSTREAM_IN_FLIGHT_DEFAULT,
} from "../../src/limits.ts";
import type { GateApi, GateReading } from "../../src/objects/methods/gate-api.ts";
import { gatePartsOf } from "../../src/providers/config/keys.ts";
import type { Objects } from "../../src/objects/address.ts";
import { notifyRuns } from "./notices.ts";
import { StoredMeters } from "./meters.ts";
import { GateStore } from "./store.ts";
import { Tables } from "../schema-version.ts";
import { MIGRATIONS } from "./migrations.ts";

/** What runs see of a gate. */
type SeenState = { class: GateClass; waitMs: number };

export class GateObject extends DurableObject<Objects> implements GateApi {
  readonly #name: string;
  readonly #store: GateStore;
  readonly #gate: Gate;
  readonly #meters: GateMeters;
  #storedMs: number;
  #latenciesStoredMs = 0;

  constructor(ctx: DurableObjectState, env: Objects) {
    super(ctx, env);
    const tables = new Tables(ctx.storage, MIGRATIONS);
    const nowMs = Date.now();
    this.#name = ctx.id.name ?? "";
    this.#store = new GateStore(ctx.storage.sql, tables);
    this.#storedMs = nowMs;
    const epoch = 1 + Math.floor(Math.random() * (Number.MAX_SAFE_INTEGER - 1));
    this.#gate = new Gate(settingsOf(env, this.#name), epoch, this.#store.stored, nowMs);
    const meterRows = new StoredMeters(ctx.storage.sql, tables);
    this.#meters = new GateMeters(meterRows, { epoch, from: `run_${crypto.randomUUID()}` });
    this.#gate.latencies.restore(this.#store.latencies());
  }

  exchange(report: GateReport): GateGrant {
    const nowMs = Date.now();
    const before = this.#stateAt(nowMs);
    const grant = this.#gate.exchange(report, nowMs);
    this.#changed(before, report.run, nowMs);
    this.#meters.exchanged(report.run, nowMs);
    return { ...grant, notesRun: true };
  }

  readMeters(most: number): GateReading {
    const { runs: unread, count: unreadCount } = this.#meters.unread(most);
    return { status: this.status(), sheet: this.#meters.sheet, unread, unreadCount };
  }

  takeMeters(meters: BroughtMeter[]): MeterSheet {
    this.ctx.storage.transactionSync(() => this.#meters.take(meters, Date.now()));
    return this.#meters.sheet;
  }

  leave(run: string, number = Infinity, last: GateReport | null = null): void {
    const nowMs = Date.now();
    const before = this.#stateAt(nowMs);
    this.#gate.leave(run, number, last, nowMs);
    if (last !== null) this.#changed(before, run, nowMs);
  }

  status(): GateStatus {
    return this.#gate.status(Date.now());
  }

  resume(): boolean {
    const nowMs = Date.now();
    const before = this.#stateAt(nowMs);
    const wasStopped = this.#gate.resume();
    if (wasStopped) this.#changed(before, null, nowMs);
    return wasStopped;
  }

  /** Stores what must survive, and notifies the runs that do not know of the change; `knows` has its grant. */
  #changed(before: SeenState, knows: string | null, nowMs: number): void {
    const memory = this.#gate.memory();
    if (shouldStore(this.#store.stored, memory, { nowMs, storedMs: this.#storedMs })) {
      this.#store.store(memory);
      this.#storedMs = nowMs;
    }
    if (nowMs >= this.#latenciesStoredMs + GATE_LATENCY_STORE_EVERY_MS) this.#storeLatencies(nowMs);
    const after = this.#stateAt(nowMs);
    if (after.class === "stopped" && before.class !== "stopped") this.#warn(nowMs);
    const runs = this.#toNotify(before, after).filter((run) => run !== knows);
    if (runs.length > 0) this.ctx.waitUntil(notifyRuns(this.env, this.#name, runs, this.#gate.notice(nowMs)));
  }

  #stateAt(nowMs: number): SeenState {
    return { class: this.#gate.classAt(nowMs), waitMs: this.#gate.waitMsAt(nowMs) };
  }

  /**
   * The runs that must know of a change at once. Runs that wait at a gate that limits come back soon by themselves; those of one that
   * was open or stopped do not, and those that may start something would start it into a Retry-After.
   */
  #toNotify(before: SeenState, after: SeenState): string[] {
    const wasLimited = before.class === "paced" || before.class === "shrunk";
    if (after.class !== before.class && (!wasLimited || after.class === "stopped"))
      return this.#gate.users(GATE_NOTICES_MAX + 1);
    const isHeldUp = before.waitMs === 0 && after.waitMs >= GATE_NEXT_MAX_MS;
    return isHeldUp ? this.#gate.holders(GATE_NOTICES_MAX + 1) : [];
  }

  /** Stores how long attempts take: it is for runs that begin after the object has slept. */
  #storeLatencies(nowMs: number): void {
    if (!this.#gate.latencies.takeChanged()) return;
    this.#store.storeLatencies(this.#gate.latencies.stored());
    this.#latenciesStoredMs = nowMs;
  }

  /** An operator who has started the gateway with a wrong key sees it on the terminal while calls wait. */
  #warn(nowMs: number): void {
    const { stop } = this.#gate.status(nowMs);
    if (stop === null) return;
    const { upstream, key } = gatePartsOf(this.#name);
    const words = stop.message ?? `${upstream} refuses its key`;
    console.warn(
      `${key === undefined ? "" : `secret:${key}: `}${words} (${stop.reason}): calls to ${upstream} wait until it works`,
    );
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
