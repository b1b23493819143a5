/**
 * A run object's life: it is built from its rows, opened, changed in turns, and deleted. Everything that changes the run
 * goes through `submit`, so that it is stored before any reply leaves. object.ts is the RPC surface above this.
 */
import type { Amounts } from "../../src/run/money/ledger.ts";
import { owedGates } from "../../src/run/steps/metered.ts";
import { callIdOf } from "../../src/run/log.ts";
import { putBack } from "../../src/run/steps/put-back.ts";
import { nextReadyMs } from "../../src/run/steps/next-ready.ts";
import { workerOf } from "../../src/run/leases/shard.ts";
import { configOf } from "../../src/env.ts";
import type { Reason } from "../../src/errors.ts";
import {
  LONG_POLL_MS,
  NOTIFY_RETRY_MS,
  SETTLE_LAG_MS,
  STOOD_STILL_MS_MIN,
  SWEEP_MS,
  TIMER_MS_MAX,
} from "../../src/limits.ts";
import { pause } from "../../src/text/bytes/slices.ts";
import { followedLine } from "../../src/log/events.ts";
import type { NamedAnswer } from "../../src/objects/methods/replay.ts";
import type { RunSettings } from "../../src/objects/methods/runs.ts";
import { RunCaller } from "../../src/objects/clients/caller.ts";
import { firstPlaceOf } from "../../src/objects/clients/directory.ts";
import { objectFailure } from "../../src/objects/clients/retry.ts";
import { sha256Hex } from "../../src/objects/clients/dedupe-key.ts";
import { DONE_CODE } from "../../src/objects/clients/run-socket.ts";
import type { SocketOwner } from "../../src/objects/methods/sockets.ts";
import { batchOf, bodiesPrefix, directoryOf, gateOf, runFilesOf, type Objects } from "../../src/objects/address.ts";
import { rootOf } from "./memory/root.ts";
import { RunAlarm } from "./alarm.ts";
import { CommitQueue } from "./turns/commit-queue.ts";
import { lanesDueMs, startableOf } from "./executors/lanes.ts";
import { executorSignals } from "./executors/signals.ts";
import { GateExchanges } from "./gates.ts";
import { dropBodies, loadBodies } from "./groups/bodies.ts";
import { RunMeters } from "./meters.ts";
import type { AlarmHost } from "./jobs/job.ts";
import { LeaseRecovery, mustLookAtOnce } from "./lease-recovery.ts";
import { LogExport, postSpans } from "./log/export.ts";
import { Followers } from "./log/followers.ts";
import { Pace } from "./log/pace.ts";
import { ItemIds } from "./log/item-ids.ts";
import { LogPages } from "./log/pages.ts";
import { RunSockets } from "./sockets/hub.ts";
import { hasChanged, ownerLeft, ownerPresent } from "./sockets/owners.ts";
import type { ReplayEffects } from "./replay/open-replay.ts";
import { RunState } from "./state.ts";
import { hasEnded } from "./status.ts";
import { BodyCache } from "./store/body-cache.ts";
import { instanceMemory } from "./store/instance-memory.ts";
import type { Refused } from "../../src/objects/methods/types.ts";
import { RunStore } from "./store/store.ts";
import { SummaryReports, summaryLook, summaryText } from "./summary-reports.ts";
import { exchangeTemplates } from "./memory/templates.ts";
import { Timer } from "./turns/timers.ts";
import { reportSpent } from "./tree/notify.ts";
import { Patches } from "./tree/patch.ts";
import { SerialQueue } from "./tree/serial-queue.ts";
import { Turns, type Flush } from "./turns/turn.ts";
import { RunWebhooks } from "./webhooks.ts";
import { webhookKey } from "../../src/batch/webhook.ts";
import { postWebhook } from "../webhook-post.ts";

export class RunLifecycle implements AlarmHost {
  readonly store: RunStore;
  /** Workers that follow the log live. */
  readonly followers: Followers;
  /** The log as followers get it, and as it is. */
  readonly followed: LogPages;
  readonly whole: LogPages;
  readonly pace = new Pace(pause);
  /** Posts to the log, which keep their order while each is prepared in slices. */
  readonly appends = new SerialQueue();
  /** Workers that hold something for long, or wait. */
  readonly sockets: RunSockets;
  readonly alarm: RunAlarm;
  readonly patches: Patches;
  readonly logExport: LogExport | null;
  readonly webhooks: RunWebhooks;
  readonly meters: RunMeters;
  readonly #objects: Objects;
  readonly #ctx: DurableObjectState;
  readonly #commits: CommitQueue;
  /** Settlements of single calls travel with the next commit; without one they are written after a moment. */
  readonly #flushTimer = new Timer(() => this.#flush());
  /** Retries fall due and cool-downs end while callers wait here. */
  readonly #readyTimer = new Timer(() => this.#commits.poke());
  /** While slots wait: lanes that were started may have ended since, or those that were signalled. */
  readonly #lanesTimer = new Timer(() => this.#commits.poke());
  /** Looks for callers that have waited long enough and leases that have expired, while there are any. */
  readonly #sweepTimer = new Timer(() => this.#sweep());
  /** Leases that were found in the rows, and that neither a socket nor a settlement has claimed meanwhile, need the alarm. */
  readonly #foundTimer = new Timer(() => this.alarm.armForFound(Date.now()));
  readonly #gates: GateExchanges;
  #opened: { run: RunState; turns: Turns; summaries: SummaryReports | null } | null = null;
  /** What the next turn writes although it may wait for a later row. */
  #flushing: Flush = null;
  constructor(ctx: DurableObjectState, objects: Objects) {
    this.#ctx = ctx;
    this.#objects = objects;
    this.store = new RunStore(ctx.storage);
    this.followers = new Followers(ctx);
    const ids = new ItemIds(this.store.groups, () => this.run?.settings.id ?? null);
    this.followed = new LogPages(this.store.log, (line) => followedLine(ids.added(line)));
    this.whole = new LogPages(this.store.log, ids.added);
    this.sockets = new RunSockets(ctx);
    const nowMs = Date.now();
    this.alarm = new RunAlarm(objects, this.store, new LeaseRecovery(nowMs), this);
    this.patches = new Patches({
      objects,
      submit: (operation) => this.submit(operation),
      startLanes: (run) => {
        run.laneStarts.due();
        this.alarm.fireNow(Date.now());
      },
    });
    this.#commits = new CommitQueue({
      now: Date.now,
      finish: (nowMs) => this.#finishTurn(nowMs),
      broken: (error) => {
        // Callers that wait here, from earlier turns too, are rejected by the abort and call the next instance.
        console.error("a turn failed; the object restarts from its rows", error);
        ctx.abort("a turn failed");
      },
      crowded: () => this.run?.engine.hasSeveralExecutors === true,
      soon: (callback) => setTimeout(callback, 0),
      stored: () => ctx.storage.sync(),
    });
    this.#gates = new GateExchanges({
      exchange: (gate, report) => gateOf(objects, gate).exchange(report),
      leave: async (gate, last) => await gateOf(objects, gate).leave(last.run, last.number, last),
      submit: (operation) => this.submit(operation),
      keep: (promise) => ctx.waitUntil(promise),
      instance: crypto.randomUUID(),
    });
    this.logExport = this.#exportOf(objects);
    this.webhooks = this.#webhooksOf(objects);
    this.meters = new RunMeters({
      send: async (gate, meter) => void (await gateOf(objects, gate).takeMeters([meter])),
      submit: (operation) => this.submit(operation),
    });
    this.#rebuild(nowMs);
    if (this.run !== null) void ctx.blockConcurrencyWhile(() => this.#restoreAlarm(nowMs));
  }

  async #restoreAlarm(nowMs: number): Promise<void> {
    this.alarm.restored(await this.#ctx.storage.getAlarm());
    // Queued slots need not wait for the alarm that was set before the restart.
    if (this.run !== null && (mustLookAtOnce(this.run) || owedGates(this.run.engine).length > 0))
      this.alarm.fireNow(nowMs);
    // What wakes the object most often is the end of the call whose lease it finds: then it needs no alarm.
    else if ((this.run?.engine.attempts.size ?? 0) > 0) this.#foundTimer.start(SWEEP_MS, nowMs);
  }

  /** The run, or null if it was never opened. */
  get run(): RunState | null {
    return this.#opened?.run ?? null;
  }

  /** The run, for callers that know its id from itself: its executors and relatives. Throws if it was never opened. */
  get opened(): RunState {
    if (this.run === null) throw new Error("no such run");
    return this.run;
  }

  /** The run, or why it may not start anything. */
  get active(): RunState | Reason {
    if (this.run === null) return { reason: "not_found", what: "run" };
    const status = this.run.statusAt(Date.now());
    return hasEnded(status) ? { reason: "invalid_api_key", message: `the run is ${status}; open another` } : this.run;
  }

  /** Stores a new run's settings. False if the run was ended before it was opened. */
  open(settings: RunSettings): boolean {
    if (this.run !== null) return true;
    if (this.store.meta.get("status") !== null) return false;
    this.store.transaction(() => this.store.meta.set("settings", settings));
    this.#rebuild(Date.now());
    this.#finishTurn(Date.now());
    return true;
  }

  /** Queues an operation for the next turn; see CommitQueue. */
  submit<T>(operation: (reply: (value: T) => void, nowMs: number) => void): Promise<T> {
    return this.#commits.submit(operation);
  }

  /** Does something with the run in a turn; resolves with its result when that is stored. */
  inTurn<T>(operation: (run: RunState, store: RunStore, nowMs: number) => T): Promise<T> {
    return this.submit((reply, nowMs) => reply(operation(this.opened, this.store, nowMs)));
  }

  /** The same, unless the run may not start anything: then resolves with why. */
  whileActive<T>(operation: (run: RunState, store: RunStore, nowMs: number) => T): Promise<T | Refused> {
    return this.submit((reply, nowMs) => {
      const run = this.active;
      reply("reason" in run ? { ok: false, reason: run } : operation(run, this.store, nowMs));
    });
  }

  /** Changes the run in a turn, if it was opened; resolves when the change is stored. */
  ifOpened(change: (run: RunState, nowMs: number) => void): Promise<void> {
    return this.submit((reply, nowMs) => {
      if (this.run !== null) change(this.run, nowMs);
      reply();
    });
  }

  /** Changes the run in a turn; resolves when the change is stored. */
  change(change: (run: RunState) => void): Promise<void> {
    return this.submit<void>((reply) => {
      change(this.opened);
      reply();
    });
  }

  /** Waits until `ready`, or until `waitMs` (at most 20 s) are over. */
  until(ready: () => boolean, waitMs: number): Promise<void> {
    const { run } = this;
    if (run === null || waitMs <= 0 || ready()) return Promise.resolve();
    return new Promise((resolve) => {
      const nowMs = Date.now();
      run.waitingReaders.wait(ready, resolve, nowMs + Math.min(waitMs, LONG_POLL_MS));
      this.#sweepTimer.start(SWEEP_MS, nowMs);
    });
  }

  /** A client looks at a group, or waits for it: from now on the alarm must find the loss of what makes it. */
  groupAsked(seq: number): void {
    const nowMs = Date.now();
    this.run?.groupAsked(seq, nowMs);
    this.alarm.arm(nowMs);
  }

  /** Takes back the credit of all instances of the gateway: they return it with their next report, or are charged. */
  async recallCredits(): Promise<void> {
    const credits = this.run?.engine.credits;
    if (credits === undefined || credits.size === 0) return;
    credits.recall();
    await this.until(() => credits.size === 0, LONG_POLL_MS);
  }

  async report(): Promise<void> {
    const { run } = this;
    if (run === null) return;
    // The reported figures are final, so no restart may take the events behind them back.
    if (run.isFinal) await this.flushLog();
    if (!run.mustReport) return;
    const { spent, overrun } = run.engine.ledger;
    await reportSpent(this.#objects, run.settings, { spent: { ...spent }, overrun: { ...overrun } });
    await this.change(() => run.reported());
  }

  /** Reports to the list of runs how far the run is, if that is not known there. Never rejects. */
  async reportSummary(): Promise<void> {
    const { run, summaries } = this.#opened ?? { run: null, summaries: null };
    if (run === null || summaries === null) return;
    const nowMs = Date.now();
    const text = summaries.now(summaryLook(run, nowMs), nowMs, () => summaryText(run, nowMs));
    if (text !== null) await summaries.deliver(() => this.#sendSummary(run, text, nowMs));
  }

  /** The same because the operator looks at the run. */
  reportLook(): void {
    const { run, summaries } = this.#opened ?? { run: null, summaries: null };
    if (run === null || summaries === null) return;
    const nowMs = Date.now();
    const text = summaries.atLook(summaryLook(run, nowMs), nowMs, () => summaryText(run, nowMs));
    if (text !== null) this.#ctx.waitUntil(summaries.deliver(() => this.#sendSummary(run, text, nowMs)));
  }

  /** The same beside everything else, if a report is due after a turn. If the last one is lost, the alarm repeats it once. */
  #summarise(run: RunState, summaries: SummaryReports, nowMs: number): void {
    const text = summaries.afterTurn(summaryLook(run, nowMs), nowMs, () => summaryText(run, nowMs));
    if (text === null) return;
    const sent = summaries
      .deliver(() => this.#sendSummary(run, text, nowMs))
      .then((isSent) => {
        if (!isSent && run.isFinal) this.alarm.arm(Date.now(), Date.now() + NOTIFY_RETRY_MS);
      });
    this.#ctx.waitUntil(sent);
  }

  async #sendSummary({ settings }: RunState, text: string, atMs: number): Promise<void> {
    const openedAt = firstPlaceOf(settings);
    await directoryOf(this.#objects, settings).summarise(settings.id, { text, atMs }, undefined, openedAt);
  }

  /** A child has ended and spent this much of its reservation. Counts once. `overrun` null = not known. */
  childEnded(childId: string, spent: Amounts, overrun: Amounts | null): Promise<void> {
    return this.submit<void>((reply, nowMs) => {
      const run = this.opened;
      const ended = run.children.end(childId, spent, overrun);
      if (ended !== null) {
        run.addWrite(ended.write);
        run.engine.log.add({ event: "child_closed", childRunId: childId, spent: ended.counted }, null, nowMs);
      }
      reply();
    });
  }

  /** An owner has changed what it waits for; or a follower of the log has every event up to a number. */
  messageArrived(socket: WebSocket, message: string | ArrayBuffer): void {
    const seq = Number(message);
    const owner = Number.isNaN(seq) ? this.sockets.updated(socket, message, Date.now()) : null;
    if (owner !== null) return this.#ownerArrived(owner);
    this.followers.wait(socket, seq);
    this.#commits.poke();
  }

  /** Whether a client follows a group at a socket: one that waits for it, or the Worker that executes it. */
  readonly isFollowed = (seq: number): boolean => {
    const executes = this.run?.workers.of(seq) !== undefined && this.run.presentExecutors.has(workerOf(seq));
    return executes || this.sockets.isFollowed(seq);
  };

  /** Accepts the socket of someone who holds something of the run; null if the run gives none. */
  acceptOwner(url: string): WebSocket | null {
    const accepted = this.run === null ? null : this.sockets.accept(url, Date.now());
    if (accepted === null) return null;
    this.#ownerArrived(accepted.owner);
    // What could start while an executor had no socket is signalled by the next turn.
    if (accepted.owner.kind === "executor") this.#commits.poke();
    return accepted.theirs;
  }

  #ownerArrived(owner: SocketOwner): void {
    this.#ownerPresent(owner);
    // Who waits for a stored call needs the alarm sooner than the call's Worker does.
    if (owner.kind === "group") this.alarm.arm(Date.now());
  }

  #ownerPresent(owner: SocketOwner): void {
    if (this.run === null) return;
    const nowMs = Date.now();
    const { signal, mustLook } = ownerPresent(this.run, owner, nowMs);
    if (signal !== null) this.sockets.signal(owner, signal);
    if (mustLook) this.alarm.fireNow(nowMs);
  }

  /** A socket has closed, of an owner or of a follower. */
  socketClosed(socket: WebSocket, code: number): void {
    this.followers.forget(socket);
    const owner = this.sockets.closed(socket);
    if (owner === null || this.run === null) return;
    const nowMs = Date.now();
    if (ownerLeft(this.run, owner, code, nowMs)) this.alarm.fireNow(nowMs);
    // A signal may have been sent to a lane that was about to end: what could start then needs another.
    if (owner.kind === "executor" && this.run.hasGroupWork) this.#commits.poke();
    if (this.run.hasWaiters) this.#sweepTimer.start(SWEEP_MS, nowMs);
    // The lease of a call that is done ends with the settlement that follows.
    if (owner.kind === "group" || code !== DONE_CODE) this.alarm.arm(nowMs);
  }

  /** Writes the log's newest events to its rows, where readers look. */
  async flushLog(): Promise<void> {
    if (this.run?.engine.log.pending !== true) return;
    await this.submit<void>((reply) => {
      this.#flushing = "log";
      reply();
    });
  }

  /** Does what stores so much more. Where nobody is asked for room, at once: what arrives together stays in one turn, and in order. */
  withSpace<T>(moreBytes: number, store: () => T | Promise<T>): T | Promise<T> {
    const growing = this.growSpace(moreBytes);
    return growing === null ? store() : growing.then(store);
  }

  /**
   * Asks the root run for what a descendant needs to store so much more; null = it needs nothing. A root asks nobody. `isStored`: it is
   * there already, and must count.
   */
  growSpace(moreBytes: number, isStored = false): Promise<void> | null {
    const { run, store } = this;
    const [rootId] = run?.settings.ancestors ?? [];
    if (run === null || rootId === undefined) return null;
    const neededBytes = store.space.neededFor(moreBytes);
    return neededBytes === 0 ? null : this.#askForSpace(rootId, run.settings.id, { neededBytes, isStored });
  }

  async #askForSpace(
    rootId: string,
    id: string,
    { neededBytes, isStored }: { neededBytes: number; isStored: boolean },
  ): Promise<void> {
    const asking = new RunCaller(this.#objects, rootId).callWithRetry<number>((root) =>
      root.allowSpace(id, neededBytes, isStored),
    );
    // A root that a deploy has not replaced yet keeps no account.
    const allowed = await asking.catch((error: unknown) => {
      if (objectFailure(error) === "outdated") return neededBytes;
      throw error;
    });
    this.store.space.allowed(allowed);
  }

  async deleteRun({ settings }: RunState): Promise<void> {
    const { id, ancestors, parentId } = settings;
    this.followers.close();
    this.sockets.close();
    await runFilesOf(this.#objects, id).destroy(id);
    if (this.store.meta.get("hasBodies")) await dropBodies(this.#objects, bodiesPrefix(id));
    if (parentId === null) await directoryOf(this.#objects, settings).forget(id, firstPlaceOf(settings));
    const [rootId] = ancestors;
    // Without the root there is no account.
    if (rootId !== undefined && this.store.space.neededFor(0) + this.store.space.allowance > 0)
      await new RunCaller(this.#objects, rootId).callWithRetry<number>((root) => root.allowSpace(id, 0));
    this.#opened = null;
    await this.store.destroy();
  }

  #finishTurn(nowMs: number): void {
    if (this.#opened === null) return;
    const { run, turns, summaries } = this.#opened;
    if (this.#readyTimer.takeLateMs(nowMs) >= STOOD_STILL_MS_MIN) run.engine.window.stoodStill(nowMs);
    turns.finish(nowMs, this.#flushing);
    this.#flushing = null;
    this.#signal(run, nowMs);
    this.followers.notify(run.readableSeq, run.isFinal && !run.engine.log.pending);
    const hasMore = run.engine.turnShare.renew() || run.engine.replayQueue.isSpent;
    if (hasMore) setTimeout(() => this.#commits.poke(), 0);
    if (this.#owesRows(run)) this.#flushTimer.start(SETTLE_LAG_MS, nowMs);
    if (run.engine.attempts.size === 0) this.#foundTimer.set(null, nowMs);
    this.#exchangeTemplates(run);
    this.#notifyBatches(run);
    this.webhooks.start();
    this.#gates.exchange(run, nowMs);
    if (summaries !== null) this.#summarise(run, summaries, nowMs);
    const readyMs = nextReadyMs(run.engine, nowMs);
    const isFar = readyMs !== null && readyMs > nowMs + TIMER_MS_MAX;
    this.#readyTimer.set(isFar ? null : readyMs, nowMs);
    run.readyAtMs = isFar ? readyMs : null;
    if (run.hasWaiters) this.#sweepTimer.start(SWEEP_MS, nowMs);
    this.alarm.arm(nowMs);
  }

  /** Signals to Workers, now that what they report is stored. */
  #signal(run: RunState, nowMs: number): void {
    for (const attemptId of run.engine.givenUp.takeOfCalls()) {
      this.sockets.signal({ kind: "call", callId: callIdOf(attemptId), attemptId }, { type: "abort" });
    }
    for (const { to, signal } of run.takeSignals()) {
      const isSent = this.sockets.signal(to, signal);
      const isPermit = signal.type === "reply" && signal.reply.ok === true;
      if (!isSent && isPermit && to.kind === "call" && putBack(run.engine, to.callId, nowMs)) {
        run.waitingCalls.addAway(to.callId, nowMs);
        // Another call may have the permit.
        setTimeout(() => this.#commits.poke(), 0);
      }
    }
    const startable = startableOf(run, nowMs);
    for (const { executor, signal } of executorSignals(run, startable, nowMs))
      this.sockets.signal({ kind: "executor", executor }, signal);
    const lanesMs = startable === null ? null : lanesDueMs(run, startable, nowMs);
    const lateMs = startable === null ? null : run.presentExecutors.nextLateMs(nowMs);
    const lookMs = Math.min(lanesMs === null || lanesMs === nowMs ? Infinity : lanesMs, lateMs ?? Infinity);
    this.#lanesTimer.set(lookMs === Infinity ? null : lookMs, nowMs);
    if (lanesMs === nowMs) {
      run.laneStarts.started(nowMs);
      run.laneStarts.need();
    }
    // The alarm starts them: its calls begin a new chain, and the platform limits the depth of one.
    if (run.laneStarts.takeNeed()) this.alarm.fireNow(nowMs);
    for (const owner of this.sockets.armed()) {
      if (owner.kind === "group" && hasChanged(run, owner)) this.sockets.signal(owner, { type: "changed" });
    }
  }

  /** Reads and reports what upstreams add to prompts, beside everything else. */
  #exchangeTemplates(run: RunState): void {
    const arrived = (): void => this.#commits.poke();
    const exchange = exchangeTemplates(this.#objects, run.engine.templates, {
      root: rootOf(run.settings),
      now: Date.now,
      arrived,
    });
    if (exchange !== null) this.#ctx.waitUntil(exchange);
  }

  /** Makes batches look at their groups. One that misses it looks by itself, later. */
  #notifyBatches(run: RunState): void {
    const { id } = run.settings;
    for (const batchId of run.takeMovedBatches()) {
      const notified = async (): Promise<void> => await batchOf(this.#objects, id, batchId).groupsMoved(id);
      this.#ctx.waitUntil(notified().catch(() => undefined));
    }
  }

  /** Something is unwritten that must not wait for long. */
  #owesRows({ engine }: RunState): boolean {
    return engine.lags || (this.followers.waiting && engine.log.pending);
  }

  #flush(): void {
    // A later turn may have written it; the start of an attempt alone is worth no row.
    if (this.run === null || !this.#owesRows(this.run)) return;
    this.#flushing ??= this.followers.waiting ? "log" : "lag";
    this.#commits.poke();
  }

  #sweep(): void {
    if (this.#opened === null) return;
    const { run, turns } = this.#opened;
    const nowMs = Date.now();
    // A withdrawal must be written, and makes room for the next call in the queue, even if nothing else happens.
    if (turns.sweep(nowMs)) this.#commits.poke();
    if ((run.engine.nextLeaseEndMs() ?? Infinity) <= nowMs) void this.alarm.fire();
    if (run.toolPermits.pending > 0 && run.toolPermits.isDue(nowMs)) this.#commits.poke();
    if (run.hasWaiters) this.#sweepTimer.start(SWEEP_MS, nowMs);
  }

  /** What replay does outside of turns: it asks another run for answers, and hashes the calls of graphs. */
  #replayEffects(runId: string): ReplayEffects {
    const inTurn = (callback: (nowMs: number) => void): void => {
      const changed = this.submit<void>((reply, nowMs) => {
        callback(nowMs);
        reply();
      });
      this.#ctx.waitUntil(changed.catch(() => undefined));
    };
    return {
      inTurn,
      hash: async (text) => await sha256Hex(new TextEncoder().encode(text)),
      otherRun: (from, { inherited }) => ({
        soon: (callback) => setTimeout(callback, 0),
        request: async (asked) => {
          const other = new RunCaller(this.#objects, from);
          if (inherited === true) {
            const taken = asked.map(({ epoch, key, calls }) => ({ epoch, key, calls }));
            return await other.callWithRetry<(NamedAnswer[] | null)[]>((run) => run.takeAnswers(runId, taken));
          }
          const wanted = asked.map(({ key, without, count }) => ({ key, without, count }));
          return await other.callWithRetry<(NamedAnswer[] | null)[]>((run) => run.recordedAnswers(wanted));
        },
      }),
    };
  }

  /** The export of the log to the operator's collector; null if none is configured. */
  #exportOf(objects: Objects): LogExport | null {
    const parsed = configOf(objects);
    const target = parsed.ok ? parsed.config.otlp : null;
    if (target === null) return null;
    return new LogExport(this, {
      now: Date.now,
      hash: async (text) => await sha256Hex(new TextEncoder().encode(text)),
      post: (request) => postSpans(target, request),
      keep: (promise) => this.#ctx.waitUntil(promise),
      over: () => this.alarm.arm(Date.now()),
    });
  }

  /** The deliveries to the operator's webhook. Events that are pending when it is removed are dropped. */
  #webhooksOf(objects: Objects): RunWebhooks {
    const parsed = configOf(objects);
    const target = parsed.ok ? parsed.config.webhook : null;
    const key = target === null ? null : webhookKey(target.secret);
    return new RunWebhooks(this, {
      now: Date.now,
      post: async (event) =>
        target === null || key === null || (await postWebhook({ url: target.url, key }, event, Date.now())),
      keep: (promise) => this.#ctx.waitUntil(promise),
      over: () => this.alarm.arm(Date.now()),
    });
  }

  /** Builds the run from its rows, if it was opened. */
  #rebuild(nowMs: number): void {
    const settings = this.store.meta.get("settings");
    if (settings === null) return;
    const parsed = configOf(this.#objects);
    const config = parsed.ok ? parsed.config : { upstreams: [], routes: [], defaultModel: null };
    const { id } = settings;
    const bodies = new BodyCache({
      load: (openKey, object) => loadBodies(this.#objects, id, { openKey, object }),
      arrived: () => this.#commits.poke(),
      wait: (ms) => scheduler.wait(ms),
      now: Date.now,
      memory: instanceMemory,
    });
    const replay = this.#replayEffects(id);
    const run = new RunState(this.store, settings, { config, bodies, replay }, { ms: nowMs, random: Math.random });
    // Only root runs are listed.
    const summaries =
      settings.parentId === null ? new SummaryReports(settings.holder, summaryLook(run, nowMs), nowMs) : null;
    this.#opened = { run, turns: new Turns(run, this.store), summaries };
    for (const owner of this.sockets.owners()) this.#ownerPresent(owner);
  }
}
