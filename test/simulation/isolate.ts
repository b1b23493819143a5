/**
 * The gateway's bundle, evaluated once per isolate with globals of its own: its clock is virtual, its randomness seeded, and
 * what it sends goes through the simulated network. Nothing of Node is replaced.
 */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { compileFunction } from "node:vm";
import type { Random } from "../../bench/adversary/random.ts";
import { current, type Activity } from "./activity.ts";
import type { VirtualClock } from "./clock.ts";
import type { ClientEnd, ObjectEnd } from "./sockets.ts";

/** What an isolate may use of the world around it. */
export type IsolateDeps = {
  clock: VirtualClock;
  random: Random;
  fetch: (from: Activity, url: string, init: RequestInit) => Promise<Response>;
  socketPair: () => { 0: ClientEnd; 1: ObjectEnd };
  /** A request keeps running for it after its reply. */
  waitUntil: (activity: Activity, promise: Promise<unknown>) => void;
  /** What the gateway prints. */
  print: (line: string) => void;
};

/** What the bundle exports: the Worker and the classes of its objects. */
export type GatewayExports = Record<string, unknown>;

const NAMES = [
  "Date",
  "Math",
  "setTimeout",
  "clearTimeout",
  "setInterval",
  "clearInterval",
  "scheduler",
  "crypto",
  "fetch",
  "Response",
  "WebSocketPair",
  "IdentityTransformStream",
  "console",
];

/** Compiles the bundle, a CommonJS module, once for all isolates. */
export function compileGateway(code: string): (deps: IsolateDeps) => GatewayExports {
  const evaluate = compileFunction(code, ["module", "exports", "require", ...NAMES], { filename: "gateway.cjs" });
  return (deps) => {
    const module: { exports: GatewayExports } = { exports: {} };
    const globals = globalsOf(deps);
    const platform = platformOf(deps);
    const require = (name: string): unknown => {
      if (name !== "cloudflare:workers") throw new Error(`the bundle requires ${name}, which the simulation has not`);
      return platform;
    };
    Reflect.apply(evaluate, undefined, [module, module.exports, require, ...NAMES.map((name) => globals[name])]);
    return module.exports;
  };
}

/** The module `cloudflare:workers`. */
function platformOf({ waitUntil }: IsolateDeps): object {
  class Entrypoint {
    readonly ctx: unknown;
    readonly env: unknown;

    constructor(ctx: unknown, env: unknown) {
      this.ctx = ctx;
      this.env = env;
    }
  }
  return {
    DurableObject: Entrypoint,
    WorkerEntrypoint: Entrypoint,
    WorkflowEntrypoint: Entrypoint,
    waitUntil: (promise: Promise<unknown>) => waitUntil(current(), promise),
  };
}

function globalsOf(deps: IsolateDeps): Record<string, unknown> {
  const { clock, random, socketPair, print } = deps;
  class VirtualDate extends Date {
    constructor(...args: [] | [number | string | Date]) {
      super(args[0] ?? clock.nowMs);
    }

    static override now(): number {
      return clock.nowMs;
    }
  }
  const timers = timersOf(deps);
  const line = (...parts: unknown[]): void => print(parts.map(shown).join(" "));
  return {
    Date: VirtualDate,
    Math: Object.create(Math, { random: { value: () => random.fraction() } }),
    ...timers,
    scheduler: { wait: (ms: number) => new Promise((resolve) => timers.setTimeout(() => resolve(undefined), ms)) },
    crypto: cryptoOf(random),
    fetch: (url: unknown, init: RequestInit = {}) => deps.fetch(current(), String(url), init),
    Response: SocketResponse,
    WebSocketPair: function WebSocketPair() {
      return socketPair();
    },
    IdentityTransformStream: TransformStream,
    console: { ...console, log: line, info: line, warn: line, error: line },
  };
}

type Timers = {
  setTimeout: (callback: () => void, ms?: number) => object;
  clearTimeout: (timer: unknown) => void;
  setInterval: (callback: () => void, ms?: number) => object;
  clearInterval: (timer: unknown) => void;
};

/** Timers of the activity that sets them, which end with it. */
function timersOf({ clock, print }: IsolateDeps): Timers {
  const stops = new WeakMap<object, () => void>();
  const start = (timer: object, ms: number, fires: () => void): void => {
    const activity = current();
    activity.timers += 1;
    const event = clock.after(ms, () => {
      activity.timers -= 1;
      stops.delete(timer);
      if (!activity.isAlive) return;
      try {
        activity.run(fires);
      } catch (error) {
        // workerd logs what a timer throws.
        print(`Uncaught ${shown(error)}`);
      }
    });
    stops.set(timer, () => {
      activity.timers -= 1;
      clock.callOff(event);
    });
  };
  const clear = (timer: unknown): void => {
    if (typeof timer !== "object" || timer === null) return;
    stops.get(timer)?.();
    stops.delete(timer);
  };
  return {
    setTimeout: (callback, ms = 0) => {
      const timer = {};
      start(timer, ms, callback);
      return timer;
    },
    clearTimeout: clear,
    setInterval: (callback, ms = 0) => {
      const timer = {};
      const fires = (): void => {
        start(timer, ms, fires);
        callback();
      };
      start(timer, ms, fires);
      return timer;
    },
    clearInterval: clear,
  };
}

/** A response that may carry a socket, with the status that Node's refuses. */
class SocketResponse extends Response {
  readonly webSocket: unknown;

  constructor(body?: ConstructorParameters<typeof Response>[0], init: ResponseInit & { webSocket?: unknown } = {}) {
    const isUpgrade = init.status === 101;
    super(body, isUpgrade ? { ...init, status: 200 } : init);
    if (isUpgrade) Object.defineProperty(this, "status", { value: 101 });
    this.webSocket = init.webSocket ?? null;
  }

  static override json(data: unknown, init: ResponseInit = {}): Response {
    const headers = new Headers(init.headers);
    if (!headers.has("content-type")) headers.set("content-type", "application/json");
    return new SocketResponse(JSON.stringify(data), { ...init, headers });
  }
}

type Bytes = Uint8Array<ArrayBuffer> | ArrayBuffer;

/** WebCrypto as far as the gateway uses it, without the threads of Node's, whose replies come at times that no seed repeats. */
function cryptoOf(random: Random): object {
  const randomUUID = (): string => {
    const digits = Array.from({ length: 32 }, () => random.integer(0, 15).toString(16)).join("");
    return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-4${digits.slice(13, 16)}-8${digits.slice(17, 20)}-${digits.slice(20)}`;
  };
  const hmac = (key: { secret: Uint8Array }, data: Bytes): Buffer =>
    createHmac("sha256", key.secret).update(bytesOf(data)).digest();
  return {
    randomUUID,
    getRandomValues: (into: Uint8Array) => into.map((_, index) => (into[index] = random.integer(0, 255))),
    subtle: {
      digest: async (_name: unknown, data: Bytes) => arrayOf(createHash("sha256").update(bytesOf(data)).digest()),
      importKey: async (_format: unknown, data: Bytes) => ({ secret: Uint8Array.from(bytesOf(data)) }),
      sign: async (_name: unknown, key: { secret: Uint8Array }, data: Bytes) => arrayOf(hmac(key, data)),
      verify: async (_name: unknown, key: { secret: Uint8Array }, signature: Bytes, data: Bytes) => {
        const expected = hmac(key, data);
        const given = bytesOf(signature);
        return given.length === expected.length && timingSafeEqual(given, expected);
      },
    },
  };
}

function bytesOf(data: Bytes): Uint8Array<ArrayBuffer> {
  return data instanceof ArrayBuffer ? new Uint8Array(data) : data;
}

function arrayOf(bytes: Uint8Array): ArrayBuffer {
  return Uint8Array.from(bytes).buffer;
}

function shown(part: unknown): string {
  return part instanceof Error ? (part.stack ?? part.message) : String(part);
}
