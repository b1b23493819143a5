/** A client with one token: it repeats what may be repeated, and reports each reply that no fault explains. */
import { BROKEN, LEFT, type Reply } from "../worker.ts";
import type { World } from "../world.ts";

/** Longest that a client repeats a request, virtual ms. */
export const PATIENCE_MS = 3_600_000;
const RETRY_MS = 1_500;

export type Request = { method: string; path: string; token?: string; body?: object; headers?: Record<string, string> };

export class Client {
  readonly #world: World;
  readonly #token: string;
  readonly #violated: (what: string) => void;

  constructor(world: World, token: string, violated: (what: string) => void) {
    this.#world = world;
    this.#token = token;
    this.#violated = violated;
  }

  /** The same client with another token. */
  as(token: string): Client {
    return new Client(this.#world, token, this.#violated);
  }

  /** Sends a request and does not wait for the end of its reply. */
  async leave(request: Request, leavesAfterMs: number): Promise<void> {
    await this.#world.request({ token: this.#token, ...request, leavesAfterMs });
  }

  /** The JSON of the reply to a request. */
  async call(request: Request, statuses: readonly number[]): Promise<object> {
    const { text } = await this.reply(request, statuses);
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === "object" && parsed !== null ? parsed : {};
  }

  /** Sends a request until it is replied to with one of the statuses; it may be repeated while the gateway fails. */
  async reply(request: Request, statuses: readonly number[]): Promise<Reply> {
    const untilMs = this.#world.clock.nowMs + PATIENCE_MS;
    for (;;) {
      const reply = await this.#world.request({ token: this.#token, ...request });
      if (reply !== BROKEN && reply !== LEFT) {
        if (statuses.includes(reply.status)) return reply;
        if (reply.status < 500 || !this.#world.mayFail)
          this.#violated(`${request.method} ${request.path}: ${reply.status} ${reply.text}`);
      }
      if (this.#world.clock.nowMs > untilMs)
        throw new Error(`no reply to ${request.method} ${request.path} within ${PATIENCE_MS} ms`);
      await this.#world.clock.wait(RETRY_MS);
    }
  }

  /**
   * Waits for the end of a group or a graph.
   *
   * @param at Its path.
   * @param seen Called with the group each time that it still runs.
   */
  async followed(at: string, seen: (group: object) => Promise<void> | void = () => undefined): Promise<object> {
    const untilMs = this.#world.clock.nowMs + PATIENCE_MS;
    while (this.#world.clock.nowMs < untilMs) {
      await this.look();
      const group = await this.call({ method: "GET", path: `${at}?wait_ms=20000` }, [200]);
      if (textAt(group, "status") !== "running") return group;
      await seen(group);
    }
    this.#violated(`${at} did not end within ${PATIENCE_MS} ms`);
    return {};
  }

  /** Looks at the books: what is spent and reserved never exceeds the limit. */
  async look(): Promise<void> {
    const { usd } = budgetIn(await this.call({ method: "GET", path: "/budget" }, [200]));
    if (usd.limit !== null && usd.spent + usd.reserved > usd.limit + 1e-12)
      this.#violated(`spent ${usd.spent} and reserved ${usd.reserved} of ${usd.limit}`);
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
