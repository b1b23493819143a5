/** The simulated platform, with a gateway of a few lines. */
import { describe, expect, it } from "vitest";
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

describe("a world", () => {
  it("keeps an object that nothing has reached yet while a call is on its way to it", async () => {
    const violations: string[] = [];
    const world = new World({
      gateway: () => ({ default: worker, RunObject: CounterObject }),
      seed: 1,
      shard: 0,
      hasFaults: false,
      upstreams: 1,
      billed: () => undefined,
      violated: (what) => violations.push(what),
    });
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
