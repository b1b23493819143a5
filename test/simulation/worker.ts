/** Isolates of the Worker, and the requests that clients make to them. */
import { Activity } from "./activity.ts";
import type { GatewayExports } from "./isolate.ts";
import type { Network } from "./network.ts";

/** Longest that a request keeps running after its reply, or after its client has left, ms. */
const AFTERWARDS_MS = 30_000;

/** A reply whose body has arrived to the end. */
export type Reply = { status: number; headers: Headers; text: string };

export type ClientRequest = {
  method: string;
  path: string;
  token: string;
  headers?: Record<string, string>;
  body?: unknown;
  /** After how many ms the client leaves; absent = it waits. */
  leavesAfterMs?: number;
};

/** The connection broke before the reply's end: the client does not know what became of its request. */
export const BROKEN = "broken";
/** The client has left. */
export const LEFT = "left";

export class WorkerIsolate {
  readonly #exports: GatewayExports;
  readonly #env: object;
  readonly #network: Network;
  readonly #requests = new Set<Activity>();
  readonly #tasks = new WeakMap<Activity, Set<Promise<unknown>>>();

  constructor(exports: GatewayExports, env: object, network: Network) {
    this.#exports = exports;
    this.#env = env;
    this.#network = network;
  }

  get requests(): number {
    return this.#requests.size;
  }

  /** A request keeps running for a promise. */
  waitUntil(activity: Activity, promise: Promise<unknown>): void {
    const tasks = this.#tasks.get(activity) ?? new Set();
    this.#tasks.set(activity, tasks);
    tasks.add(promise);
    const over = (): boolean => tasks.delete(promise);
    promise.then(over, over);
  }

  /** The machine is gone: so is every request on it. */
  kill(): void {
    for (const activity of this.#requests) activity.end();
  }

  /** Sends a request and reads its reply to the end. */
  request(request: ClientRequest): Promise<Reply | typeof BROKEN | typeof LEFT> {
    const { clock } = this.#network;
    const activity = new Activity(`${request.method} ${request.path}`);
    const client = new AbortController();
    this.#requests.add(activity);
    activity.whenEnded(() => this.#requests.delete(activity));
    return new Promise((resolve) => {
      activity.whenEnded(() => resolve(BROKEN));
      if (request.leavesAfterMs !== undefined) {
        clock.after(request.leavesAfterMs, () => {
          resolve(LEFT);
          if (activity.isAlive) activity.run(() => client.abort());
          clock.after(AFTERWARDS_MS, () => activity.end());
        });
      }
      clock.after(this.#network.latencyMs(), () => {
        if (!activity.isAlive || client.signal.aborted) return;
        const served = activity.run(() => this.#serve(request, client.signal, activity));
        void served.then((reply) => {
          clock.after(this.#network.latencyMs(), () => {
            resolve(activity.isAlive ? reply : BROKEN);
            void this.#afterwards(activity);
          });
        });
      });
    });
  }

  async #serve(request: ClientRequest, signal: AbortSignal, activity: Activity): Promise<Reply | typeof BROKEN> {
    const { method, path, token, headers = {}, body } = request;
    const sent = new Request(`https://gateway.test${path}`, {
      method,
      signal,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const context = {
      waitUntil: (promise: Promise<unknown>) => this.waitUntil(activity, promise),
      passThroughOnException: () => undefined,
      props: {},
    };
    const response = await fetchOf(this.#exports)(sent, this.#env, context);
    try {
      return { status: response.status, headers: response.headers, text: await response.text() };
    } catch {
      return BROKEN;
    }
  }

  /** Ends a request whose reply is out: when nothing keeps it, or when its time is over. */
  async #afterwards(activity: Activity): Promise<void> {
    this.#network.clock.after(AFTERWARDS_MS, () => activity.end());
    const tasks = this.#tasks.get(activity) ?? new Set();
    while (tasks.size > 0) await Promise.allSettled(tasks);
    activity.end();
  }
}

function fetchOf(exports: GatewayExports): (request: Request, env: object, context: object) => Promise<Response> {
  const worker: unknown = exports["default"];
  const fetch: unknown = typeof worker === "object" && worker !== null ? Reflect.get(worker, "fetch") : null;
  if (typeof fetch !== "function") throw new TypeError("the bundle exports no Worker");
  return async (request, env, context) => {
    const response: unknown = await Reflect.apply(fetch, undefined, [request, env, context]);
    if (!(response instanceof Response)) throw new TypeError("the Worker gave no response");
    return response;
  };
}
