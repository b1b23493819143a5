/**
 * The run object's insides: the run in memory, the queue of turns, the timers and the alarm. object.ts is its RPC surface.
 * What must happen even if this instance is gone is the alarm's; the timers only serve callers that wait here.
 */
import { expireLeases, loseAttempts } from "../../src/engine/settle.ts";
import { configOf } from "../../src/env.ts";
import type { Reason } from "../../src/errors.ts";
import {
  FOUND_LEASE_TTL_MS,
  LEASE_TTL_MS,
  LONG_POLL_MS,
  SETTLE_LAG_MS,
  SWEEP_MS,
  TELL_AGAIN_MS,
} from "../../src/limits.ts";
import { zeroAmounts, type Amounts } from "../../src/budget/ledger.ts";
import { directoryOf, laneOf, shelfOf, type Objects } from "../address.ts";
import { CommitQueue } from "./commit.ts";
import { RunCore } from "./core.ts";
import { endRun } from "./end.ts";
import { Followers } from "./followers.ts";
import { missingLanes } from "./lanes.ts";
import { settleHold } from "./patch.ts";
import { hasEnded, type RunSettings } from "./settings.ts";
import { foundAttempts, lostAttempts, stopAborted } from "./recall.ts";
import { RunStore } from "./store.ts";
import { Timer } from "./timers.ts";
import { cancelAbandoned, report, tellChildren } from "./tree.ts";

const UNFOLLOWED = "nobody follows the group any more, and it was opened with detach: false";

export class RunShell {
  readonly store: RunStore;
  readonly #env: Objects;
  readonly #commits: CommitQueue;
  /** Settlements of single calls travel with the next commit; without one they are written after a moment. */
  readonly #flushTimer = new Timer(() => this.#flush());
  /** Retries fall due and cool-downs end while callers wait here. */
  readonly #readyTimer = new Timer(() => this.#commits.poke());
  /** Looks for callers that have waited long enough and leases that are over, while there are any. */
  readonly #sweepTimer = new Timer(() => this.#sweep());
  /** Those who follow the log live. */
  readonly followers: Followers;
  /** Leases that end up to here were found by this instance, not made by it. */
  readonly #foundUntilMs: number;
  /** Lanes have been asked for what this instance found in flight. */
  #recalled = false;
  #core: RunCore | null = null;
  #alarmMs: number | null = null;
  #flushing = false;

  constructor(ctx: DurableObjectState, env: Objects) {
    this.#env = env;
    this.store = new RunStore(ctx.storage);
    this.followers = new Followers(ctx);
    this.#rebuild();
    this.#foundUntilMs = Date.now() + FOUND_LEASE_TTL_MS;
    // Slots that are queued need not wait for the alarm that was set before the restart.
    if (this.#core?.hasGroupWork === true) this.wake();
    this.#commits = new CommitQueue({
      now: Date.now,
      conclude: (nowMs) => this.#conclude(nowMs),
      broken: (error) => {
        // Whoever waits here, from earlier turns too, hears of it by the abort and asks the next instance.
        console.error("a turn failed; the object restarts from its rows", error);
        ctx.abort("a turn failed");
      },
      crowded: () => (this.#core?.state.attempts.size ?? 0) > 1,
      soon: (callback) => setTimeout(callback, 0),
    });
  }

  /** The run, or null when it was never opened. */
  get core(): RunCore | null {
    return this.#core;
  }

  /** The run, where there must be one: its executors and relatives know it from itself. */
  get opened(): RunCore {
    if (this.#core === null) throw new Error("no such run");
    return this.#core;
  }

  /** The run, or why it may not start anything. */
  get active(): RunCore | Reason {
    const core = this.#core;
    if (core === null) return { reason: "not_found", what: "run" };
    const over = core.statusAt(Date.now());
    return hasEnded(over) ? { reason: "invalid_api_key", message: `the run is ${over}; open another` } : core;
  }

  /** Stores a new run's settings. False when it was ended before it began. */
  open(settings: RunSettings): boolean {
    if (this.#core !== null) return true;
    if (this.store.status() !== null) return false;
    this.store.create();
    this.store.transaction(() => this.store.putSettings(settings));
    this.#rebuild();
    const { name, limits, maxParallel } = settings;
    this.opened.state.log.add({ event: "run_opened", name, limits, maxParallel }, null, settings.createdAtMs);
    this.#flushing = true;
    this.#conclude(Date.now());
    return true;
  }

  /** Queues an operation for the next turn; see CommitQueue. */
  submit<T>(run: (reply: (value: T) => void, nowMs: number) => void): Promise<T> {
    return this.#commits.submit(run);
  }

  /** A turn that changes what `change` changes and writes the row it returns, if any. True if it returned one. */
  write(change: (core: RunCore) => (() => void) | null): Promise<boolean> {
    return this.submit((reply) => {
      const row = change(this.opened);
      if (row !== null) this.opened.writes.push(row);
      reply(row !== null);
    });
  }

  /** Waits until `ready`, or `waitMs` (at most 20 s) are over. */
  until(ready: () => boolean, waitMs: number): Promise<void> {
    const core = this.#core;
    if (core === null || waitMs <= 0 || ready()) return Promise.resolve();
    return new Promise((resolve) => {
      const nowMs = Date.now();
      core.readers.wait(ready, resolve, nowMs + Math.min(waitMs, LONG_POLL_MS));
      this.#sweepTimer.start(SWEEP_MS, nowMs);
    });
  }

  /** What the alarm does: ends leases and runs whose time is over, starts missing lanes, tells relatives. */
  async alarm(): Promise<void> {
    this.#alarmMs = null;
    const core = this.#core;
    if (core === null) return;
    await this.submit<void>((reply, nowMs) => {
      expireLeases(core.state, nowMs);
      for (const seq of core.attached.lapsed(nowMs)) core.cancel(seq, UNFOLLOWED, nowMs);
      for (const seq of core.openings.takeAbandoned(nowMs)) core.writes.push(() => this.store.dropGroup(seq));
      if (nowMs >= core.settings.expiresAtMs && !hasEnded(core.status)) endRun(core, this.store, "expired", nowMs);
      reply();
    });
    const { id } = core.settings;
    await stopAborted(this.#env, core);
    await this.#recall(core);
    const lanes = core.hasGroupWork ? missingLanes(core) : [];
    await Promise.all(lanes.map((lane) => laneOf(this.#env, id, lane).start(id, lane)));
    try {
      const neverOpened = (childId: string): Promise<void> => this.childEnded(childId, zeroAmounts());
      await cancelAbandoned(core, this.#env, neverOpened, Date.now());
      await tellChildren(core, this.#env, neverOpened);
      await this.report();
      if (core.holdInDoubt) await core.patches.take(() => settleHold(this, core, this.#env));
      if (Date.now() >= (core.deleteAtMs ?? Infinity)) return await this.#delete(core);
      this.#armAlarm(Date.now());
      await this.#outliveFoundLeases(core);
    } catch (error) {
      console.error("a run could not tell its relatives; it will try again", error);
      this.#setAlarm(Date.now() + TELL_AGAIN_MS);
    }
  }

  /**
   * Leases that this instance found got a fresh term. With nobody asking, the instance would be gone before its end, and
   * the one that the next alarm wakes would grant another: so the alarm that woke it stays until it has seen them end.
   */
  async #outliveFoundLeases(core: RunCore): Promise<void> {
    // Another alarm waits until this one is through, and relatives must not.
    const over = (): boolean =>
      core.mustTell || core.state.aborted.size > 0 || (core.state.nextLeaseEndMs() ?? Infinity) > this.#foundUntilMs;
    while (!over() && Date.now() <= this.#foundUntilMs) await this.until(over, LONG_POLL_MS);
  }

  /** Tells whoever holds this run's budget what it spent, once it is final. */
  async report(): Promise<void> {
    const core = this.#core;
    if (core === null) return;
    // What is told counts for good, so no restart may take it back.
    if (core.isFinal) await this.flushLog();
    if (!(await report(core, this.#env))) return;
    await this.write(() => {
      core.reported = true;
      return () => this.store.putReported();
    });
  }

  /** A child has ended and spent this much of what it held. Counts once. */
  async childEnded(id: string, spent: Amounts): Promise<void> {
    await this.submit<void>((reply, nowMs) => {
      const core = this.opened;
      const row = core.children.end(id, spent);
      if (row !== null) {
        core.writes.push(row);
        core.state.log.add({ event: "child_closed", childRunId: id, spent }, null, nowMs);
      }
      reply();
    });
  }

  /** A follower has every event up to `seq`. */
  follow(socket: WebSocket, seq: number): void {
    this.followers.wait(socket, seq);
    this.#commits.poke();
  }

  /** Makes the log's newest lines durable, so that whoever reads it now sees them. */
  async flushLog(): Promise<void> {
    if (this.#core?.state.log.pending !== true) return;
    await this.submit<void>((reply) => {
      this.#flushing = true;
      reply();
    });
  }

  /** Gives up at once what a restart found in flight and no lane makes any more. */
  async #recall(core: RunCore): Promise<void> {
    const found = foundAttempts(core.state, this.#foundUntilMs);
    if (this.#recalled || found.size === 0) return;
    this.#recalled = true;
    const lost = await lostAttempts(this.#env, core, found);
    await this.submit<void>((reply, nowMs) => {
      loseAttempts(core.state, lost, nowMs);
      reply();
    });
  }

  /** The run has been kept for as long as it asked: nothing of it stays. */
  async #delete(core: RunCore): Promise<void> {
    this.followers.close();
    await shelfOf(this.#env, core.settings.id).destroy(core.settings.id);
    if (core.settings.parentId === null) await directoryOf(this.#env).forget(core.settings.id);
    this.#core = null;
    await this.store.destroy();
  }

  #conclude(nowMs: number): void {
    const core = this.#core;
    if (core === null) return;
    core.conclude(nowMs, this.#flushing);
    this.#flushing = false;
    this.followers.tell(core.durableSeq, core.isFinal && !core.state.log.pending);
    if (this.#owesRows(core)) this.#flushTimer.start(SETTLE_LAG_MS, nowMs);
    this.#readyTimer.set(core.state.nextReadyMs(nowMs), nowMs);
    if (core.waiting > 0) this.#sweepTimer.start(SWEEP_MS, nowMs);
    this.#armAlarm(nowMs);
  }

  /** Something is unwritten that must not wait for long. */
  #owesRows({ state }: RunCore): boolean {
    return state.lags || (this.followers.waiting && state.log.pending);
  }

  #flush(): void {
    // A later turn may have written it: the start of an attempt alone is worth no row.
    if (this.#core === null || !this.#owesRows(this.#core)) return;
    this.#flushing = true;
    this.#commits.poke();
  }

  #sweep(): void {
    const core = this.#core;
    if (core === null) return;
    const nowMs = Date.now();
    core.sweep(nowMs);
    if ((core.state.nextLeaseEndMs() ?? Infinity) <= nowMs) void this.alarm();
    if (core.tools.isDue(nowMs)) this.#commits.poke();
    if (core.waiting > 0) this.#sweepTimer.start(SWEEP_MS, nowMs);
  }

  /** An alarm that is set earlier than needed stays: setting it costs a row, and when it fires it is set again. */
  #armAlarm(nowMs: number): void {
    // Leases end later than any that the alarm was set for, so while it is near there is nothing to work out.
    const near = this.#alarmMs !== null && this.#alarmMs <= nowMs + LEASE_TTL_MS;
    const core = this.#core;
    if (near && core?.mustTell === false && core.state.aborted.size === 0 && core.deleteAtMs === null) return;
    const atMs = core?.nextAlarmMs(nowMs) ?? null;
    if (atMs !== null && (this.#alarmMs === null || atMs < this.#alarmMs)) this.#setAlarm(atMs);
  }

  /** Has the alarm go off at once. */
  wake(): void {
    this.#setAlarm(Date.now());
  }

  #setAlarm(atMs: number): void {
    this.#alarmMs = atMs;
    this.store.setAlarm(atMs);
  }

  #rebuild(): void {
    const settings = this.store.settings();
    if (settings === null) return;
    const parsed = configOf(this.#env);
    const config = parsed.ok ? parsed.config : { upstreams: [], defaultModel: null };
    this.#core = new RunCore(this.store, settings, config, { ms: Date.now(), random: Math.random });
  }
}
