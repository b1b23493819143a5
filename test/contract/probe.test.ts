/** `GET /_probe/:n`: for the operator, and only where PROBE is 1; the probes that a laptop can run measure something. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { startWorld, type World } from "./world.ts";

let world: World;
let plain: World;
beforeAll(async () => {
  [world, plain] = await Promise.all([startWorld(undefined, { PROBE: "1" }), startWorld()]);
});
afterAll(() => Promise.all([world.stop(), plain.stop()]));

const numbers = z.object({ count: z.number(), p50_ms: z.number().min(0), p99_ms: z.number().min(0) });
const probed = z.looseObject({ object: z.literal("probe"), probe: z.number(), at: z.iso.datetime() });

/** What a probe measures, at the test's own gateway. */
async function probe(path: string) {
  const { status, json } = await world.sendAsOperator(`/_probe/${path}`);
  expect([path, status]).toEqual([path, 200]);
  return probed.parse(json);
}

describe("the probes", () => {
  it("do not exist unless they are switched on, and then only for the operator", async () => {
    expect((await plain.sendAsOperator("/_probe/5")).status).toBe(404);
    expect((await plain.sendAsOperator("/_probe/hold")).status).toBe(404);
    const run = await world.openRun();
    expect((await run.send("/_probe/5", { method: "GET" })).status).toBe(403);
    expect((await run.send("/_probe/hold", { method: "GET" })).status).toBe(403);
    expect((await world.send("/_probe/5")).status).toBe(401);
    expect((await world.sendAsOperator("/_probe/0")).status).toBe(404);
    expect((await world.sendAsOperator("/_probe/10")).status).toBe(404);
  });

  it("refuse a parameter that is out of its bounds", async () => {
    for (const query of ["count=0", "count=1001", "count=x", "ms=1500001"]) {
      expect([query, (await world.sendAsOperator(`/_probe/2?${query}`)).status]).toEqual([query, 400]);
    }
  });

  it("time a call to an object beside held fetches, and fetches beside each other", async () => {
    const beside = z.object({
      alone_ms: z.number(),
      beside_ms: z.number(),
      answered: z.array(z.literal(200)).length(6),
    });
    expect(beside.parse(await probe("1?ms=300"))).toBeDefined();
    const wide = z.object({ wall_ms: z.number().min(300), answered: z.array(z.literal(200)).length(8) });
    expect(wide.parse(await probe("2?count=8&ms=300"))).toBeDefined();
    expect(await probe("9?ms=50")).toMatchObject({ status: 200, error: null, hold_ms: 50 });
  });

  it("hold sockets, count the rows of runs, and time first uses, round trips and commits", async () => {
    expect(await probe("3?count=3&ms=50")).toMatchObject({ sockets: 3, run: expect.stringMatching(/./) });
    const rows = z.object({ runs: z.literal(2), rows_counted: z.number().min(4) });
    expect(rows.parse(await probe("4?count=2"))).toBeDefined();
    expect(z.object({ named: numbers, unique: numbers }).parse(await probe("5?count=3"))).toBeDefined();
    expect(z.object({ read: numbers, written: numbers }).parse(await probe("6?count=5"))).toBeDefined();
  });

  it("open groups that end without a client", async () => {
    const left = z.looseObject({ run: z.string(), group: z.string(), status: z.literal(202) });
    const { run, group } = left.parse(await probe("8?calls=3&model=sim/echo"));
    const headers = { "x-fanout-run": run };
    await expect
      .poll(async () => (await world.sendAsOperator(`/groups/${group}`, { method: "GET", headers })).json)
      .toMatchObject({ status: "completed" });
    expect(left.parse(await probe("7?model=sim/echo"))).toBeDefined();
  });
});
