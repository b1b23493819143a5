/**
 * Counts the calls to objects that follow one another before something happens: each is a way there and back, and a
 * flush, that a client waits for. Calls that are under way at the same time count as one; what an object calls while it
 * is called comes after that call.
 *
 * Stubs are wrapped where they are taken, and methods where they run, which tells which call a method serves. Tests and
 * objects share one isolate; a scope does not cross an RPC, so the order of calls to one method of one object is used.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { DurableObject, env } from "cloudflare:workers";
import * as worker from "../../src/index.ts";

/** A chain of calls, each begun after the one before had ended, or by it. */
type Chain = readonly string[];

/** A request or a method that makes calls: the longest chain that had ended when its next call begins. */
type Caller = { chain: Chain };

type Method = (this: object, ...args: unknown[]) => unknown;

const calling = new AsyncLocalStorage<Caller>();
/** Calls that have been sent and whose methods have not begun, by object and method. */
const sent = new Map<string, Caller[]>();
let request: Caller = { chain: [] };
let firstFetch: Chain | null = null;
let isWatching = false;
/** Only then stubs are wrapped: other files of the runtime give theirs to functions that take no wrapped one. */
let isCounting = false;

/** What a request did one after another, by object kind and method. */
export type Hops = {
  /** Until the first byte went to an upstream; null if none did. */
  beforeUpstream: Chain | null;
  /** Until `send` resolved. */
  inAll: Chain;
};

/** So long a reply is held, ms: the call that it waits for follows it, if it comes no sooner. */
const HELD_MS_MAX = 20_000;

/** Calls whose replies wait until so many of them were sent: what could be under way at the same time is, however slow the machine is. */
type Together = { method: string; calls: number };
let together: (Together & { sent: number; all: PromiseWithResolvers<void> }) | null = null;

/**
 * Makes one request and counts; no other may be under way. `held`: calls of which so many are expected to be under way at the same time;
 * without it, two such calls count as one after another if the first has ended before the second begins.
 */
export async function hopsOf(send: () => Promise<unknown>, held: Together | null = null): Promise<Hops> {
  request = { chain: [] };
  firstFetch = null;
  sent.clear();
  together = held === null ? null : { ...held, sent: 0, all: Promise.withResolvers<void>() };
  isCounting = true;
  try {
    await calling.run(request, send);
  } finally {
    isCounting = false;
    together = null;
  }
  return { beforeUpstream: firstFetch, inAll: request.chain };
}

/** Starts watching, if no file of this runtime has. Before the first request of a test file. */
export function watchHops(): void {
  if (isWatching) return;
  isWatching = true;
  const namespaces: object = Reflect.getPrototypeOf(env.RUN) ?? {};
  for (const key of ["get", "getByName"]) {
    replace(namespaces, key, (plain) => {
      return function (this: object, ...args: unknown[]): unknown {
        const stub = Reflect.apply(plain, this, args);
        return isCounting ? watchedStub(stub) : stub;
      };
    });
  }
  for (const [name, exported] of Object.entries(worker)) {
    if (typeof exported === "function" && exported.prototype instanceof DurableObject) {
      watchMethods(name, exported.prototype);
    }
  }
  // A request comes without the scope of who sent it.
  replace(worker.default, "fetch", (plain) => {
    return function (this: object, ...args: unknown[]): unknown {
      return calling.run(request, () => Reflect.apply(plain, this, args));
    };
  });
  replace(globalThis, "fetch", (plain) => {
    return function (this: object, ...args: unknown[]): unknown {
      firstFetch ??= calling.getStore()?.chain ?? null;
      return Reflect.apply(plain, this, args);
    };
  });
}

/** A stub whose calls are counted for who makes them. */
function watchedStub(stub: unknown): unknown {
  if (typeof stub !== "object" || stub === null) return stub;
  const id = String(Reflect.get(stub, "id"));
  return new Proxy(stub, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key);
      if (typeof key !== "string" || typeof value !== "function" || key === "then") return value;
      return (...args: unknown[]): unknown => {
        // Without a scope it is what an object does by itself: no request waits for it.
        const caller = calling.getStore() ?? { chain: [] };
        const call: Caller = { chain: [...caller.chain, key] };
        const waiting = sent.get(`${id} ${key}`) ?? [];
        sent.set(`${id} ${key}`, [...waiting, call]);
        const plain: unknown = Reflect.apply(value, target, args);
        const reply = key === together?.method ? heldReply(plain, together) : plain;
        const ended = (): void => {
          if (call.chain.length > caller.chain.length) caller.chain = call.chain;
        };
        // The promise of an RPC: looking at it makes no other call.
        Promise.resolve(reply).then(ended, ended);
        return reply;
      };
    },
  });
}

/** A reply that comes once all calls of its method were sent. */
async function heldReply(reply: unknown, held: NonNullable<typeof together>): Promise<unknown> {
  held.sent += 1;
  if (held.sent === held.calls) held.all.resolve();
  const answered = await Promise.resolve(reply);
  await Promise.race([held.all.promise, new Promise((resolve) => setTimeout(resolve, HELD_MS_MAX))]);
  return answered;
}

function watchMethods(kind: string, prototype: object): void {
  for (let level = prototype; level !== DurableObject.prototype; level = Object.getPrototypeOf(level)) {
    for (const key of Object.getOwnPropertyNames(level)) {
      if (key === "constructor" || typeof Reflect.get(level, key) !== "function") continue;
      replace(level, key, (plain) => {
        return function (this: object, ...args: unknown[]): unknown {
          const id = String(Reflect.get(Object(Reflect.get(this, "ctx")), "id"));
          const [call, ...others] = sent.get(`${id} ${key}`) ?? [];
          sent.set(`${id} ${key}`, others);
          // An alarm, or a call of the object to itself.
          if (call === undefined) return Reflect.apply(plain, this, args);
          call.chain = [...call.chain.slice(0, -1), `${kind}.${key}`];
          return calling.run(call, () => Reflect.apply(plain, this, args));
        };
      });
    }
  }
}

function replace(owner: object, key: string, wrap: (plain: Method) => Method): void {
  const plain: unknown = Reflect.get(owner, key);
  if (!isMethod(plain)) throw new Error(`there is no ${key} to watch`);
  Object.defineProperty(owner, key, { value: wrap(plain), writable: true, configurable: true });
}

function isMethod(value: unknown): value is Method {
  return typeof value === "function";
}
