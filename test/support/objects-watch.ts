/**
 * Watches what objects do: which RPCs a run's object gets, who fetches, and who takes the stub of a lane. Tests and
 * objects share one isolate, so wrapping prototypes and globals reaches both; a scope does not cross an RPC, so it names
 * the object that acts and not the caller.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { DurableObject, env } from "cloudflare:workers";
import { RunStore } from "../../durable-objects/run/store/store.ts";
import { LaneObject, RunObject } from "../../src/index.ts";

type Acting = { kind: "run" | "lane"; name: string; method: string };

/** What was seen of one run since the first call of `watched` for it. */
export type Seen = {
  /** RPCs and alarms that the run's object got, by method. */
  calls: Record<string, number>;
  /** Starts of its lanes by any caller. */
  laneStarts: number;
  /** Alarms that the run's object has set, and transactions that it has made. */
  alarmsSet: number;
  transactions: number;
  /** Fetches that the run's object itself began. */
  runFetches: number;
  /** Most fetches that each lane had begun without an answer's headers, by lane's name. */
  lanePeaks: Record<string, number>;
  /** Which of the run object's methods took the stub of a lane; "worker" means a Worker request. */
  laneStubsTakenBy: Set<string>;
  /** Timers of the run's object that are set, by its methods and what they have started. */
  timers: Set<unknown>;
  /** Other objects that a lane took a stub of, beside its own run. */
  strangersCalledByLanes: string[];
};

type Method = (this: object, ...args: unknown[]) => unknown;

const acting = new AsyncLocalStorage<Acting>();
let isWatching = false;
const seenByRun = new Map<string, Seen>();

/** What was seen of a run so far; it goes on counting. */
export function watched(runId: string): Seen {
  const known = seenByRun.get(runId);
  if (known !== undefined) return known;
  const seen: Seen = {
    calls: {},
    laneStarts: 0,
    alarmsSet: 0,
    transactions: 0,
    runFetches: 0,
    lanePeaks: {},
    laneStubsTakenBy: new Set(),
    timers: new Set(),
    strangersCalledByLanes: [],
  };
  seenByRun.set(runId, seen);
  return seen;
}

/** Starts watching, if no file of this runtime has. Before the first request of a test file. */
export function watchObjects(): void {
  if (isWatching) return;
  isWatching = true;
  watchClass(RunObject.prototype, "run", (name, method) => {
    const { calls } = watched(name);
    calls[method] = (calls[method] ?? 0) + 1;
  });
  watchClass(LaneObject.prototype, "lane", (name, method) => {
    if (method === "start") watched(runIdOf(name)).laneStarts += 1;
  });
  watchStore();
  watchFetch();
  watchStubs();
  watchTimers();
}

function watchClass(prototype: object, kind: Acting["kind"], called: (name: string, method: string) => void): void {
  for (let level = prototype; level !== DurableObject.prototype; level = Object.getPrototypeOf(level)) {
    for (const method of Object.getOwnPropertyNames(level)) {
      const plain: unknown = Object.getOwnPropertyDescriptor(level, method)?.value;
      if (method === "constructor" || !isMethod(plain)) continue;
      const watchedMethod = function (this: object, ...args: unknown[]): unknown {
        const name = nameOf(this);
        called(name, method);
        return acting.run({ kind, name, method }, () => plain.apply(this, args));
      };
      Object.defineProperty(level, method, { value: watchedMethod, writable: true, configurable: true });
    }
  }
}

/** What an object's constructor does is not seen. */
function watchStore(): void {
  const { setAlarm, transaction } = RunStore.prototype;
  const seen = (): Seen | null => {
    const actor = acting.getStore();
    return actor?.kind === "run" ? watched(actor.name) : null;
  };
  RunStore.prototype.setAlarm = function (atMs) {
    const run = seen();
    if (run !== null) run.alarmsSet += 1;
    setAlarm.call(this, atMs);
  };
  RunStore.prototype.transaction = function (write) {
    const run = seen();
    if (run !== null) run.transactions += 1;
    transaction.call(this, write);
  };
}

function watchFetch(): void {
  const plain = globalThis.fetch;
  const inFlight = new Map<string, number>();
  globalThis.fetch = async (input, init) => {
    const actor = acting.getStore();
    if (actor?.kind === "run") watched(actor.name).runFetches += 1;
    if (actor?.kind !== "lane") return plain(input, init);
    const { name } = actor;
    const { lanePeaks } = watched(runIdOf(name));
    const now = (inFlight.get(name) ?? 0) + 1;
    inFlight.set(name, now);
    lanePeaks[name] = Math.max(lanePeaks[name] ?? 0, now);
    try {
      return await plain(input, init);
    } finally {
      inFlight.set(name, (inFlight.get(name) ?? 0) - 1);
    }
  };
}

/** A timeout is set until it has gone off or is cleared, an interval until it is cleared. */
function watchTimers(): void {
  const { setTimeout: setOnce, setInterval: setAgain, clearTimeout: clearOnce, clearInterval: clearAgain } = globalThis;
  const timersOf = (): Set<unknown> | null => {
    const actor = acting.getStore();
    return actor?.kind === "run" ? watched(actor.name).timers : null;
  };
  const replace = (name: string, value: unknown): void => {
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
  };
  replace("setTimeout", (callback: () => void, ms?: number): unknown => {
    const timers = timersOf();
    const handle: unknown = setOnce(() => {
      timers?.delete(handle);
      callback();
    }, ms);
    timers?.add(handle);
    return handle;
  });
  replace("setInterval", (callback: () => void, ms?: number): unknown => {
    const handle: unknown = setAgain(callback, ms);
    timersOf()?.add(handle);
    return handle;
  });
  const forget = (handle: unknown): void => {
    for (const { timers } of seenByRun.values()) timers.delete(handle);
  };
  replace("clearTimeout", (handle?: ReturnType<typeof setTimeout>): void => {
    forget(handle);
    if (handle !== undefined) clearOnce(handle);
  });
  replace("clearInterval", (handle?: ReturnType<typeof setInterval>): void => {
    forget(handle);
    if (handle !== undefined) clearAgain(handle);
  });
}

/** The native namespaces share one prototype, so one wrapper sees every stub that is taken. */
function watchStubs(): void {
  const prototype: unknown = Object.getPrototypeOf(env.LANE);
  if (typeof prototype !== "object" || prototype === null)
    throw new Error("the runtime's namespaces have no prototype");
  watchTaking(prototype, "getByName", (name) => (typeof name === "string" ? name : null));
  watchTaking(prototype, "get", (id) => {
    return typeof id === "object" && id !== null ? nameOfId(id) : null;
  });
}

function watchTaking(prototype: object, key: string, nameFrom: (argument: unknown) => string | null): void {
  const plain: unknown = Reflect.get(prototype, key);
  if (!isMethod(plain)) throw new Error(`the runtime's namespaces have no ${key} on their prototype`);
  const watchedMethod = function (this: object, ...args: unknown[]): unknown {
    const name = nameFrom(args[0]);
    if (name !== null) stubTaken(name);
    return plain.apply(this, args);
  };
  Object.defineProperty(prototype, key, { value: watchedMethod, writable: true, configurable: true });
}

function stubTaken(name: string): void {
  const actor = acting.getStore();
  const isLane = name.includes("/");
  if (isLane)
    watched(runIdOf(name)).laneStubsTakenBy.add(actor === undefined ? "worker" : `${actor.kind}.${actor.method}`);
  if (actor?.kind !== "lane") return;
  const runId = runIdOf(actor.name);
  if (name !== runId) watched(runId).strangersCalledByLanes.push(name);
}

/** A lane is named after its run. */
function runIdOf(laneName: string): string {
  return laneName.split("/")[0] ?? laneName;
}

function nameOf(instance: object): string {
  const ctx: unknown = Reflect.get(instance, "ctx");
  const id: unknown = typeof ctx === "object" && ctx !== null ? Reflect.get(ctx, "id") : null;
  if (typeof id !== "object" || id === null) throw new Error("an object without an id acts");
  return nameOfId(id);
}

/** The name of an object, or the run id that holds its id. */
function nameOfId(id: object): string {
  const name: unknown = Reflect.get(id, "name");
  return typeof name === "string" ? name : `run_${String(id)}`;
}

function isMethod(value: unknown): value is Method {
  return typeof value === "function";
}
