/**
 * One Durable Object: at most one instance at a time, made when something arrives, evicted when nothing does; a storage that
 * outlives it; sockets that outlive its sleep and not its reset; an alarm that fires at least once.
 */
import { Activity } from "./activity.ts";
import type { Event, VirtualClock } from "./clock.ts";
import { objectReset, remoteError } from "./errors.ts";
import { ClientEnd, ObjectEnd } from "./sockets.ts";
import { ObjectStorage } from "./storage.ts";
import type { Network } from "./network.ts";

/** An instance of a class of the gateway, whose methods are called by name. */
export type Target = object;

export type ObjectDeps = {
  clock: VirtualClock;
  network: Network;
  name: string;
  /** Constructs an instance of the object's class with a context. */
  construct: (context: object) => Target;
  /** The id as `ctx.id` shows it. */
  id: object;
  commitMs: () => number;
  /** Whether an alarm that was handled fires once more: it fires at least once. */
  firesTwice: () => boolean;
  /** An event that the platform reports and that must not happen. */
  broken: (what: string) => void;
  /** Counts the time for which an instance was in memory. */
  awake: (ms: number) => void;
};

/** An idle instance is evicted after this, ms; one with timers later. */
const IDLE_MS = 10_000;
const IDLE_WITH_TIMERS_MS = 100_000;
/** Delays after which an alarm that failed fires again, ms; the last repeats. */
const ALARM_RETRY_MS = [2_000, 4_000, 8_000, 16_000, 32_000];

type Instance = {
  activity: Activity;
  target: Target;
  /** What must be over before anything is delivered; null = nothing. */
  blocked: Promise<unknown> | null;
  /** Events being handled. */
  events: number;
  lastEventMs: number;
  startedMs: number;
  /** Rejects each call that has no reply. */
  rejects: Set<(error: Error) => void>;
};

export class SimulatedObject {
  readonly #deps: ObjectDeps;
  readonly storage: ObjectStorage;
  #instance: Instance | null = null;
  #sockets = new Set<ObjectEnd>();
  #alarm: Event | null = null;
  #alarmFailures = 0;
  #isFiring = false;

  constructor(deps: ObjectDeps) {
    this.#deps = deps;
    this.storage = new ObjectStorage({
      commit: (durable) => deps.clock.after(deps.commitMs(), durable),
      nowMs: () => deps.clock.nowMs,
      alarmSet: (atMs) => {
        this.#awaitAlarm(atMs);
      },
    });
  }

  get isAwake(): boolean {
    return this.#instance !== null;
  }

  /** Since when an instance has been in memory, epoch ms; null = none is. */
  get awakeSinceMs(): number | null {
    return this.#instance?.startedMs ?? null;
  }

  /** What keeps the instance in memory. */
  get why(): string {
    if (this.#instance === null) return "it sleeps";
    const { activity, events, lastEventMs } = this.#instance;
    const idleS = Math.round((this.#deps.clock.nowMs - lastEventMs) / 1_000);
    const unwritten = this.storage.durable === null ? "" : ", a commit";
    return `${events} events, ${activity.calls} calls, ${activity.timers} timers${unwritten}, idle for ${idleS} s`;
  }

  get sockets(): number {
    return this.#sockets.size;
  }

  /** Calls a method, and resolves with its result once what it wrote is durable. */
  async deliver(call: (target: Target) => unknown): Promise<unknown> {
    const instance = this.#instance ?? this.#start();
    instance.events += 1;
    try {
      const { promise, resolve, reject } = Promise.withResolvers<unknown>();
      instance.rejects.add(reject);
      void this.#handled(instance, call)
        .then(resolve, (error: unknown) => reject(remoteError(error)))
        .finally(() => instance.rejects.delete(reject));
      return await promise;
    } finally {
      instance.events -= 1;
      instance.lastEventMs = this.#deps.clock.nowMs;
    }
  }

  /** The instance ends at once, and with it what it did not store; the sockets break. */
  reset(): void {
    const instance = this.#instance;
    if (instance === null) return;
    this.#end(instance);
    this.storage.crash();
    for (const socket of this.#sockets) socket.breaks();
    this.#sockets.clear();
    for (const reject of [...instance.rejects]) reject(objectReset());
    instance.rejects.clear();
  }

  async #handled(instance: Instance, call: (target: Target) => unknown): Promise<unknown> {
    if (instance.blocked !== null) await instance.blocked;
    if (!instance.activity.isAlive) throw objectReset();
    const value = await instance.activity.run(() => call(instance.target));
    for (let durable = this.storage.durable; durable !== null; durable = null) await durable;
    return value;
  }

  #start(): Instance {
    const { clock, name } = this.#deps;
    const activity = new Activity(name, () => this.storage.durable);
    const blocks: Promise<unknown>[] = [];
    const target = activity.run(() => this.#deps.construct(this.#context(activity, blocks)));
    const nowMs = clock.nowMs;
    const instance: Instance = {
      activity,
      target,
      blocked: null,
      events: 0,
      lastEventMs: nowMs,
      startedMs: nowMs,
      rejects: new Set(),
    };
    if (blocks.length > 0) instance.blocked = Promise.all(blocks).then(() => (instance.blocked = null));
    this.#instance = instance;
    this.#watch(instance, IDLE_MS);
    return instance;
  }

  /** What the class sees as its `ctx`. */
  #context(activity: Activity, blocks: Promise<unknown>[]): object {
    return {
      id: this.#deps.id,
      storage: this.storage,
      waitUntil: (promise: Promise<unknown>) => void promise.catch(() => undefined),
      blockConcurrencyWhile: <T>(block: () => Promise<T>): Promise<T> => {
        const blocked = block();
        blocks.push(blocked);
        return blocked;
      },
      abort: (why: unknown) => {
        this.#deps.broken(`${activity.name} aborted itself: ${String(why)}`);
        this.reset();
        throw objectReset();
      },
      acceptWebSocket: (socket: unknown, tags: readonly string[] = []) => {
        if (!(socket instanceof ObjectEnd)) throw new TypeError("this is no end of a socket that an object accepts");
        socket.acceptedBy(
          { message: (end, text) => this.#event("webSocketMessage", end, text), closed: this.#closed },
          tags,
        );
        this.#sockets.add(socket);
      },
      getWebSockets: (tag?: string) =>
        [...this.#sockets].filter((each) => each.isOpen && (tag === undefined || each.tags.includes(tag))),
    };
  }

  readonly #closed = (end: ObjectEnd, code: number): void => {
    this.#sockets.delete(end);
    this.#event("webSocketClose", end, code, "", code !== LOST_CODE);
  };

  /** Delivers what nobody waits for. */
  #event(method: string, ...args: unknown[]): void {
    const called = this.deliver((target) => callMethod(target, method, args));
    called.catch((error: unknown) => {
      if (!isReset(error)) this.#deps.broken(`${this.#deps.name}.${method} threw ${describe(error)}`);
    });
  }

  /** There is one event at most for all alarms that an object sets: it moves its alarm with every turn. */
  #awaitAlarm(atMs: number | null): void {
    const { clock } = this.#deps;
    if (this.#alarm !== null) clock.callOff(this.#alarm);
    this.#alarm = atMs === null ? null : clock.at(atMs, () => this.#alarmDue(atMs));
  }

  #alarmDue(atMs: number): void {
    if (this.storage.alarmMs !== atMs || this.#isFiring) return;
    this.#fire();
  }

  #fire(): void {
    this.#isFiring = true;
    this.storage.alarmFires();
    const fired = this.deliver((target) => callMethod(target, "alarm", []));
    void fired.then(
      () => {
        this.#isFiring = false;
        this.#alarmFailures = 0;
        this.storage.alarmFired();
        const { alarmMs } = this.storage;
        if (alarmMs !== null) this.#awaitAlarm(alarmMs);
        else if (this.#deps.firesTwice()) this.#fireLater();
      },
      (error: unknown) => {
        if (!isReset(error)) this.#deps.broken(`the alarm of ${this.#deps.name} threw ${describe(error)}`);
        this.#fireLater();
      },
    );
  }

  #fireLater(): void {
    this.#isFiring = false;
    this.storage.alarmFired();
    const delayMs = ALARM_RETRY_MS[Math.min(this.#alarmFailures, ALARM_RETRY_MS.length - 1)] ?? 0;
    this.#alarmFailures += 1;
    this.#deps.clock.after(delayMs, () => {
      if (!this.#isFiring) this.#fire();
    });
  }

  /** Evicts the instance once nothing has happened for long enough. */
  #watch(instance: Instance, inMs: number): void {
    this.#deps.clock.after(inMs, () => {
      if (this.#instance !== instance) return;
      const { activity, events, lastEventMs } = instance;
      const idleMs = this.#deps.clock.nowMs - lastEventMs;
      const limitMs = activity.timers > 0 ? IDLE_WITH_TIMERS_MS : IDLE_MS;
      const isBusy = events > 0 || activity.calls > 0 || this.storage.durable !== null;
      if (isBusy) return this.#watch(instance, IDLE_MS);
      if (idleMs < limitMs) return this.#watch(instance, Math.min(limitMs - idleMs, IDLE_MS));
      this.#end(instance);
    });
  }

  #end(instance: Instance): void {
    this.#instance = null;
    this.#deps.awake(this.#deps.clock.nowMs - instance.startedMs);
    this.storage.forgetStatements();
    instance.activity.end();
  }
}

const LOST_CODE = 1_006;

/** Calls a method of an instance by its name. */
export function callMethod(target: Target, method: string, args: readonly unknown[]): unknown {
  const found: unknown = Reflect.get(target, method);
  if (typeof found !== "function") throw new TypeError(`The RPC receiver does not implement the method "${method}".`);
  return Reflect.apply(found, target, args);
}

function isReset(error: unknown): boolean {
  return error instanceof Error && "durableObjectReset" in error;
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** A pair of ends, as `new WebSocketPair()` gives them: one to give away, one to accept. */
export function socketPair(network: Network): { 0: ClientEnd; 1: ObjectEnd } {
  const client = new ClientEnd(network);
  return { 0: client, 1: client.other };
}
