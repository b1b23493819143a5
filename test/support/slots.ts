/**
 * The limits that production has and local tools lack, put into the test's isolate:
 *
 * - Six fetches of one object, or of one top-level Worker request, may wait for response headers at once. The seventh
 *   queues silently. A slot is freed when headers arrive, so bodies may overlap without bound.
 * - A value of more than 2 MB does not fit a row.
 *
 * Tests and objects share one isolate, so wrapping its globals reaches both. Two holes to know: a fetch from a test's
 * own code is not limited; nor is one that an object's constructor starts. Each call of a WorkerEntrypoint is an invocation,
 * as a request is, and has six slots of its own.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { DurableObject, WorkerEntrypoint } from "cloudflare:workers";

/** Fetches of one I/O context that may wait for headers at once on Cloudflare. */
const SLOTS_PER_CONTEXT = 6;
/** Largest string or blob of a row on Cloudflare, bytes. */
export const ROW_BYTES_MAX = 2_000_000;

/** Files of one runtime share this module, as they share what it wraps. */
let isLimited = false;

type Method = (this: object, ...args: unknown[]) => unknown;

class Slots {
  #free = SLOTS_PER_CONTEXT;
  readonly #queue: (() => void)[] = [];

  async take(signal: AbortSignal | null): Promise<void> {
    signal?.throwIfAborted();
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const turn = () => {
        signal?.removeEventListener("abort", leave);
        resolve();
      };
      const leave = () => {
        this.#queue.splice(this.#queue.indexOf(turn), 1);
        reject(signal?.reason);
      };
      this.#queue.push(turn);
      signal?.addEventListener("abort", leave, { once: true });
    });
  }

  give(): void {
    const next = this.#queue.shift();
    if (next) next();
    else this.#free += 1;
  }
}

const scope = new AsyncLocalStorage<Slots>();
const slotsByObject = new WeakMap<object, Slots>();

function slotsOf(instance: object): Slots {
  const known = slotsByObject.get(instance);
  if (known) return known;
  const slots = new Slots();
  slotsByObject.set(instance, slots);
  return slots;
}

/**
 * Limits everything that a Worker's module exports: each class of objects or entrypoints, and the default export's `fetch`.
 * Called from a setup file, for each test file; a runtime that several files share is limited once.
 */
export function emulateProductionLimits(worker: Record<string, unknown>): void {
  if (isLimited) return;
  isLimited = true;
  limitFetch();
  for (const [name, value] of Object.entries(worker)) {
    if (typeof value === "function") limitClass(value);
    else if (name === "default" && typeof value === "object" && value !== null) limitHandlers(value);
  }
}

function limitFetch(): void {
  const unlimited = globalThis.fetch;
  globalThis.fetch = async (input, init) => {
    const slots = scope.getStore();
    if (!slots) return unlimited(input, init);
    await slots.take(init?.signal ?? (input instanceof Request ? input.signal : null));
    try {
      return await unlimited(input, init);
    } finally {
      slots.give();
    }
  };
}

function limitClass(exported: { prototype?: unknown }): void {
  const { prototype } = exported;
  if (prototype instanceof WorkerEntrypoint) limitMethods(prototype, WorkerEntrypoint.prototype, () => new Slots());
  if (prototype instanceof DurableObject) limitMethods(prototype, DurableObject.prototype, limitedObject);
}

/** Wraps the methods of a class and of those that it extends, up to the platform's. */
function limitMethods(prototype: object, platform: object, slotsFor: (instance: object) => Slots): void {
  for (let level: object = prototype; level !== platform; level = Object.getPrototypeOf(level)) {
    for (const key of Object.getOwnPropertyNames(level)) {
      if (key !== "constructor") wrapMethod(level, key, slotsFor);
    }
  }
}

/** Each top-level request of a Worker is an I/O context of its own. */
function limitHandlers(handlers: object): void {
  for (const key of ["fetch", "scheduled", "queue"]) wrapMethod(handlers, key, () => new Slots());
}

function wrapMethod(owner: object, key: string, slotsFor: (instance: object) => Slots): void {
  const method: unknown = Object.getOwnPropertyDescriptor(owner, key)?.value;
  if (!isMethod(method)) return;
  const limited = function (this: object, ...args: unknown[]): unknown {
    return scope.run(slotsFor(this), () => method.apply(this, args));
  };
  Object.defineProperty(owner, key, { value: limited, writable: true, configurable: true });
}

function limitedObject(instance: object): Slots {
  const ctx: unknown = Reflect.get(instance, "ctx");
  if (typeof ctx === "object" && ctx !== null && "storage" in ctx) limitRows(ctx.storage);
  return slotsOf(instance);
}

const limitedSql = new WeakSet<object>();

/** The native `exec` is on the prototype that all objects of the isolate share, so it is wrapped once. */
function limitRows(storage: unknown): void {
  if (typeof storage !== "object" || storage === null || !("sql" in storage)) return;
  const prototype: unknown = Object.getPrototypeOf(storage.sql);
  if (typeof prototype !== "object" || prototype === null || limitedSql.has(prototype)) return;
  const exec: unknown = Reflect.get(prototype, "exec");
  if (!isMethod(exec)) throw new Error("the runtime's SqlStorage has no exec on its prototype: rows cannot be limited");
  limitedSql.add(prototype);
  Object.defineProperty(prototype, "exec", {
    value: function (this: object, ...args: unknown[]): unknown {
      args.slice(1).forEach(refuseHuge);
      return exec.apply(this, args);
    },
    writable: true,
    configurable: true,
  });
}

function refuseHuge(value: unknown): void {
  const bytes =
    typeof value === "string" ? Buffer.byteLength(value) : value instanceof ArrayBuffer ? value.byteLength : 0;
  if (bytes > ROW_BYTES_MAX) throw new Error(`string or blob too big: ${bytes} bytes, a row holds ${ROW_BYTES_MAX}`);
}

function isMethod(value: unknown): value is Method {
  return typeof value === "function";
}
