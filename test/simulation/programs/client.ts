/** A client with one token: it repeats what may be repeated, and reports each reply that no fault explains. */
import { BROKEN, LEFT, type Reply } from "../worker.ts";
import type { World } from "../world.ts";

/** Longest that a client repeats a request or waits for a group of some hundred slots, virtual ms. */
export const PATIENCE_MS = 3_600_000;
const RETRY_MS = 1_500;

export type Request = { method: string; path: string; token?: string; body?: object; headers?: Record<string, string> };

export type ClientDeps = { world: World; patienceMs: number; violated: (what: string) => void };

export class Client {
  readonly #deps: ClientDeps;
  readonly #token: string;

  constructor(deps: ClientDeps, token: string) {
    this.#deps = deps;
    this.#token = token;
  }

  /** The same client with another token. */
  as(token: string): Client {
    return new Client(this.#deps, token);
  }

  /** Sends a request and does not wait for the end of its reply. */
  async leave(request: Request, leavesAfterMs: number): Promise<void> {
    await this.#deps.world.request({ token: this.#token, ...request, leavesAfterMs });
  }

  /** The JSON of the reply to a request. */
  async call(request: Request, statuses: readonly number[]): Promise<object> {
    const { text } = await this.reply(request, statuses);
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === "object" && parsed !== null ? parsed : {};
  }

  /** Sends a request until it is replied to with one of the statuses; it may be repeated while the gateway fails. */
  async reply(request: Request, statuses: readonly number[]): Promise<Reply> {
    const { world, patienceMs, violated } = this.#deps;
    const untilMs = world.clock.nowMs + patienceMs;
    for (;;) {
      const reply = await world.request({ token: this.#token, ...request });
      if (reply !== BROKEN && reply !== LEFT) {
        if (statuses.includes(reply.status)) return reply;
        if (reply.status < 500 || !world.mayFail)
          violated(`${request.method} ${request.path}: ${reply.status} ${reply.text}`);
      }
      if (world.clock.nowMs > untilMs)
        throw new Error(`no reply to ${request.method} ${request.path} within ${patienceMs} ms`);
      await world.clock.wait(RETRY_MS);
    }
  }

  /**
   * Waits for the end of a group or a graph.
   *
   * @param at Its path.
   * @param seen Called with the group each time that it still runs.
   */
  async followed(at: string, seen: (group: object) => Promise<void> | void = () => undefined): Promise<object> {
    const { world, patienceMs, violated } = this.#deps;
    const untilMs = world.clock.nowMs + patienceMs;
    while (world.clock.nowMs < untilMs) {
      await this.look();
      const group = await this.call({ method: "GET", path: `${at}?wait_ms=20000` }, [200]);
      if (textAt(group, "status") !== "running") return group;
      await seen(group);
    }
    violated(`${at} did not end within ${patienceMs} ms`);
    return {};
  }

  /** Looks at the books: what is spent and reserved never exceeds the limit. */
  async look(): Promise<void> {
    const { usd } = budgetIn(await this.call({ method: "GET", path: "/budget" }, [200]));
    if (usd.limit !== null && usd.spent + usd.reserved > usd.limit + 1e-12)
      this.#deps.violated(`spent ${usd.spent} and reserved ${usd.reserved} of ${usd.limit}`);
  }
}

export function textAt(value: unknown, name: string): string {
  const found: unknown = typeof value === "object" && value !== null ? Reflect.get(value, name) : null;
  return typeof found === "string" ? found : "";
}

export function listAt(value: object, name: string): unknown[] {
  const found: unknown = Reflect.get(value, name);
  return Array.isArray(found) ? found : [];
}

export function objectAt(value: object, name: string): object {
  const found: unknown = Reflect.get(value, name);
  return typeof found === "object" && found !== null ? found : {};
}

/** The money of a budget, USD. */
export function budgetIn(value: unknown): { usd: { limit: number | null; spent: number; reserved: number } } {
  const usd: unknown = typeof value === "object" && value !== null ? Reflect.get(value, "usd") : null;
  const numberAt = (name: string): number | null => {
    const found: unknown = typeof usd === "object" && usd !== null ? Reflect.get(usd, name) : null;
    return typeof found === "number" ? found : null;
  };
  return { usd: { limit: numberAt("limit"), spent: numberAt("spent") ?? 0, reserved: numberAt("reserved") ?? 0 } };
}
