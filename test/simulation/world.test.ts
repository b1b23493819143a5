/** The simulated platform, with a gateway of a few lines. */
import { describe, expect, it } from "vitest";
import type { GatewayExports } from "./isolate.ts";
import { World } from "./world.ts";

type Context = { storage: { sql: { exec: (query: string) => { toArray: () => unknown[] } } } };
type Counter = { count: () => Promise<number> };

/** Counts its calls in its rows. */
class CounterObject {
  readonly #sql: Context["storage"]["sql"];

  constructor({ storage }: Context) {
    this.#sql = storage.sql;
  }

  count(): number {
    this.#sql.exec("CREATE TABLE IF NOT EXISTS call (at INTEGER)");
    this.#sql.exec("INSERT INTO call VALUES (1)");
    return this.#sql.exec("SELECT at FROM call").toArray().length;
  }
}

const worker = {
  fetch: async (_request: Request, env: { RUN: { getByName: (name: string) => Counter } }): Promise<Response> =>
    Response.json(await env.RUN.getByName("counter").count()),
};

function worldOf(exports: GatewayExports, violations: string[]): World {
  return new World({
    gateway: () => exports,
    seed: 1,
    shard: 0,
    hasFaults: false,
    upstreams: 1,
    billed: () => undefined,
    violated: (what) => violations.push(what),
  });
}

describe("the alarm of an object", () => {
  async function rings(alarms: (nowMs: number) => number[]): Promise<number> {
    let count = 0;
    class AlarmObject {
      readonly #storage: { setAlarm: (atMs: number) => Promise<void> };

      constructor({ storage }: { storage: { setAlarm: (atMs: number) => Promise<void> } }) {
        this.#storage = storage;
      }

      async count(): Promise<number> {
        await this.#storage.setAlarm(world.clock.nowMs + 10);
        return 0;
      }

      async alarm(): Promise<void> {
        count += 1;
        if (count === 1) for (const atMs of alarms(world.clock.nowMs)) await this.#storage.setAlarm(atMs);
      }
    }
    const world = worldOf({ default: worker, RunObject: AlarmObject }, []);
    void world.request({ method: "POST", path: "/", token: "" });
    await world.clock.run(world.clock.nowMs + 1_000);
    return count;
  }

  it("fires once more if its handler sets it", async () => {
    expect(await rings(() => [])).toBe(1);
    expect(await rings((nowMs) => [nowMs + 1])).toBe(2);
  });

  it("is over if its handler sets it to the time at which it fires, as on the platform", async () => {
    expect(await rings((nowMs) => [nowMs])).toBe(1);
    expect(await rings((nowMs) => [nowMs + 0.25])).toBe(1);
    expect(await rings((nowMs) => [nowMs, nowMs + 1])).toBe(2);
  });
});

describe("a world", () => {
  it("keeps an object that nothing has reached yet while a call is on its way to it", async () => {
    const violations: string[] = [];
    const world = worldOf({ default: worker, RunObject: CounterObject }, violations);
    const counts: unknown[] = [];
    for (let call = 0; call < 5; call += 1) {
      const replied = world.request({ method: "POST", path: "/", token: "" });
      void replied.then((reply) => counts.push(typeof reply === "string" ? reply : JSON.parse(reply.text)));
      for (let ms = 0; ms < 100; ms += 1) {
        await world.clock.run(world.clock.nowMs + 1);
        world.sweep();
      }
    }
    expect(counts).toEqual([1, 2, 3, 4, 5]);
    expect(violations).toEqual([]);
  });
});
