/**
 * Meters what Cloudflare bills for objects: requests to them, rows that they write, alarms, socket messages, and what
 * holds them in memory. Tests and objects share one isolate, so wrapping prototypes and globals reaches both. Work that
 * an object has started, and not the object, is told apart by its scope: a scope does not cross an RPC.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { DurableObject } from "cloudflare:workers";
import * as worker from "../../src/index.ts";

/** Billed operations; all are sums. */
export type Operations = {
  /** Requests to objects: RPCs, and the requests that open sockets. */
  requests: number;
  /** Rows written by SQL, tables made, and alarms set: Cloudflare bills each as a row. */
  rows: number;
  /** Writes that become durable together, and that a reply waits for. */
  commits: number;
  /** Alarms that fired. */
  alarms: number;
  /** Messages that objects received on sockets. */
  messages: number;
  /** For how long timers of objects were set, ms: a cleared one counts until then. */
  timerMs: number;
};

const NAMES = ["requests", "rows", "commits", "alarms", "messages", "timerMs"] as const satisfies (keyof Operations)[];

/** Why an object cannot sleep. */
export type Holder = {
  kind: "request" | "fetch" | "timeout" | "interval";
  /** The method of a request; empty for the others. */
  method: string;
  /** Of timers, ms. */
  delayMs: number;
};

type Metered = Operations & { kind: string; isOurs: boolean; holders: Set<Holder>; alarmDelayMs: number | null };

type Method = (this: object, ...args: unknown[]) => unknown;

/** The object that acts, or the Worker that answers a request. */
type Actor = { object: Metered | null; instance: object | null };

const acting = new AsyncLocalStorage<Actor>();
const byId = new Map<string, Metered>();
/** Timers of Workers. Tests have no scope. */
const workerTimers = new Set<Holder>();
let isMetering = false;

/** Methods that the runtime calls and does not bill as requests. */
const UNBILLED = new Set(["webSocketClose", "webSocketError"]);

/** Starts metering, if no file of this runtime has. Before the first request of a test file. */
export function meterObjects(): void {
  if (isMetering) return;
  isMetering = true;
  for (const [name, exported] of Object.entries(worker)) {
    if (typeof exported === "function") meterClass(name, exported.prototype);
  }
  wrap(worker.default, "fetch", (plain) => {
    return function (this: object, ...args: unknown[]): unknown {
      return acting.run({ object: null, instance: null }, () => plain.apply(this, args));
    };
  });
  meterFetches();
  meterTimers("setTimeout", "clearTimeout", "timeout");
  meterTimers("setInterval", "clearInterval", "interval");
}

/**
 * Forgets every object. Those that are first seen ringing their alarm belong to earlier tests, and do not count; nor do runs that are
 * not opened from now on: Workers of earlier tests, and of earlier files, go on reporting to theirs.
 */
export function resetMeter(): void {
  openedRuns.clear();
  countAnew();
}

/** Counts from zero, with the runs that the test has opened. */
export function countAnew(): void {
  byId.clear();
  byMethod.clear();
  workerTimers.clear();
}

/** Run objects, by their keys in `byId`, that were opened since `resetMeter`. */
const openedRuns = new Set<string>();

/** What all objects did since `resetMeter` or `countAnew`. */
export function operations(): Operations {
  const sum = none();
  for (const object of ours()) for (const name of NAMES) sum[name] += object[name];
  return sum;
}

/** Requests of these methods so far, of any object: to wait for one that a slow machine may have under way for long. */
export function requestsOf(method: string): number {
  return byMethod.get(method) ?? 0;
}

/** All requests so far, by method. */
export function requestsByMethod(): Record<string, number> {
  return Object.fromEntries(byMethod);
}

const byMethod = new Map<string, number>();

function none(): Operations {
  return { requests: 0, rows: 0, commits: 0, alarms: 0, messages: 0, timerMs: 0 };
}

/** The objects that cannot sleep now, with the reasons; and the timers of Workers. */
export function awake(): { objects: { kind: string; holders: Holder[] }[]; workerTimers: Holder[] } {
  const held = ours().filter(({ holders }) => holders.size > 0);
  return {
    objects: held.map(({ kind, holders }) => ({ kind, holders: [...holders] })),
    workerTimers: [...workerTimers],
  };
}

/** The delays for which the alarms of objects are set, ms: as they were set, however long ago. */
export function alarmDelays(): number[] {
  return ours().flatMap(({ alarmDelayMs }) => (alarmDelayMs === null ? [] : [alarmDelayMs]));
}

/** Objects as far as they work for earlier tests. */
const others: Metered = { ...none(), kind: "others", isOurs: false, holders: new Set(), alarmDelayMs: null };

/** Whether a run has been called in this test. */
function isOurRun(runId: unknown): boolean {
  return typeof runId === "string" && byId.get(`RunObject/${runId.replace(/^run_/, "")}`)?.isOurs === true;
}

function ours(): Metered[] {
  return [...byId.values()].filter(({ isOurs }) => isOurs);
}

function meterClass(kind: string, prototype: unknown): void {
  if (!(prototype instanceof DurableObject)) return;
  for (let level: object = prototype; level !== DurableObject.prototype; level = Object.getPrototypeOf(level)) {
    for (const method of Object.getOwnPropertyNames(level)) {
      if (method === "constructor" || typeof Object.getOwnPropertyDescriptor(level, method)?.value !== "function")
        continue;
      wrap(level, method, (plain) => {
        return function (this: object, ...args: unknown[]): unknown {
          // A method that the object calls itself is no request.
          if (acting.getStore()?.instance === this) return plain.apply(this, args);
          // What runs of earlier tests report to the list of runs does not count.
          if (method === "summarise" && !isOurRun(args[0]))
            return acting.run({ object: others, instance: this }, () => plain.apply(this, args));
          return request(metered(kind, this, method), { instance: this, method }, () => plain.apply(this, args));
        };
      });
    }
  }
}

function metered(kind: string, instance: object, method: string): Metered {
  const ctx: unknown = Reflect.get(instance, "ctx");
  if (typeof ctx !== "object" || ctx === null || !("id" in ctx) || !("storage" in ctx))
    throw new Error("no object acts");
  meterStorage(ctx.storage);
  const id = `${kind}/${String(ctx.id)}`;
  const known = byId.get(id);
  if (known !== undefined) return known;
  if (kind === "RunObject" && method === "open") openedRuns.add(id);
  const isOurs = method !== "alarm" && (kind !== "RunObject" || openedRuns.has(id));
  const fresh: Metered = { ...none(), kind, isOurs, holders: new Set(), alarmDelayMs: null };
  byId.set(id, fresh);
  return fresh;
}

function request(
  object: Metered,
  { instance, method }: { instance: object; method: string },
  run: () => unknown,
): unknown {
  if (method === "alarm") {
    object.alarms += 1;
    object.alarmDelayMs = null;
  } else if (method === "webSocketMessage") object.messages += 1;
  else if (!UNBILLED.has(method)) {
    object.requests += 1;
    byMethod.set(method, (byMethod.get(method) ?? 0) + 1);
  }
  const holder: Holder = { kind: "request", method, delayMs: 0 };
  object.holders.add(holder);
  const release = (): boolean => object.holders.delete(holder);
  try {
    const result = acting.run({ object, instance }, run);
    if (result instanceof Promise) result.then(release, release);
    else release();
    return result;
  } catch (error) {
    release();
    throw error;
  }
}

const meteredStorages = new WeakSet<object>();

/** The native classes have one prototype for all objects, so each is wrapped once. */
function meterStorage(storage: unknown): void {
  if (typeof storage !== "object" || storage === null || !("sql" in storage)) return;
  const { sql } = storage;
  const prototype: unknown = Object.getPrototypeOf(storage);
  if (typeof sql !== "object" || sql === null || typeof prototype !== "object" || prototype === null) return;
  if (meteredStorages.has(prototype)) return;
  meteredStorages.add(prototype);
  wrap(Object.getPrototypeOf(sql), "exec", (plain) => {
    return function (this: object, ...args: unknown[]): unknown {
      const cursor = plain.apply(this, args);
      if (typeof cursor === "object" && cursor !== null && "rowsWritten" in cursor) wrote(Number(cursor.rowsWritten));
      return cursor;
    };
  });
  wrap(prototype, "setAlarm", (plain) => {
    return function (this: object, ...args: unknown[]): unknown {
      wrote(1);
      const object = acting.getStore()?.object;
      if (object) object.alarmDelayMs = Number(args[0]) - Date.now();
      return plain.apply(this, args);
    };
  });
}

/** A constructor has no scope: what it writes when its object wakes belongs to no object by name. */
function constructed(): Metered {
  const known = byId.get("");
  if (known !== undefined) return known;
  const fresh: Metered = { ...none(), kind: "constructor", isOurs: true, holders: new Set(), alarmDelayMs: null };
  byId.set("", fresh);
  return fresh;
}

const writing = new WeakSet<Metered>();

/** Rows of one moment are durable together. */
function wrote(rows: number): void {
  const actor = acting.getStore();
  const object = actor === undefined ? constructed() : actor.object;
  if (object === null || rows === 0) return;
  object.rows += rows;
  if (writing.has(object)) return;
  writing.add(object);
  object.commits += 1;
  queueMicrotask(() => writing.delete(object));
}

function meterFetches(): void {
  wrap(globalThis, "fetch", (plain) => {
    return async function (this: object, ...args: unknown[]): Promise<unknown> {
      const object = acting.getStore()?.object;
      const holder: Holder = { kind: "fetch", method: "", delayMs: 0 };
      object?.holders.add(holder);
      try {
        return await plain.apply(this, args);
      } finally {
        object?.holders.delete(holder);
      }
    };
  });
}

/** A timeout is set until it has gone off or is cleared, an interval until it is cleared. */
function meterTimers(
  set: "setTimeout" | "setInterval",
  clear: "clearTimeout" | "clearInterval",
  kind: Holder["kind"],
): void {
  const forgetBy = new Map<unknown, () => void>();
  wrap(globalThis, set, (plain) => {
    return function (this: object, ...args: unknown[]): unknown {
      const actor = acting.getStore();
      const [callback, delayMs, ...rest] = args;
      if (actor === undefined || typeof callback !== "function") return plain.apply(this, args);
      const { object } = actor;
      const holders = object?.holders ?? workerTimers;
      const holder: Holder = { kind, method: "", delayMs: Number(delayMs ?? 0) };
      const setAtMs = performance.now();
      holders.add(holder);
      const called = (...given: unknown[]): void => {
        if (kind === "timeout") forgetBy.get(handle)?.();
        Reflect.apply(callback, undefined, given);
      };
      const handle = plain.call(this, called, delayMs, ...rest);
      forgetBy.set(handle, () => {
        holders.delete(holder);
        if (object !== null && kind === "timeout")
          object.timerMs += Math.min(holder.delayMs, performance.now() - setAtMs);
        forgetBy.delete(handle);
      });
      return handle;
    };
  });
  wrap(globalThis, clear, (plain) => {
    return function (this: object, ...args: unknown[]): unknown {
      forgetBy.get(args[0])?.();
      return plain.apply(this, args);
    };
  });
}

function wrap(owner: object, key: string, wrapper: (plain: Method) => Method): void {
  const plain: unknown = Reflect.get(owner, key);
  if (!isMethod(plain)) throw new Error(`the runtime has no ${key} to meter`);
  Object.defineProperty(owner, key, { value: wrapper(plain), writable: true, configurable: true });
}

function isMethod(value: unknown): value is Method {
  return typeof value === "function";
}
