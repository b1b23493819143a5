/** Calls to objects that follow one another before an upstream gets its first byte, for each way in. */
import { exports } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { CREDIT_AFTER_CALLS, PAGES_CALL_CHARS_MAX } from "../../src/limits.ts";
import { hopsOf, watchHops } from "../support/objects-hops.ts";
import { ADMIN_KEY } from "../support/object-vars.ts";
import { openRun, prompts, type TestRun } from "../support/objects-run.ts";

watchHops();

/** Sends a request and reads its answer to the end. */
async function post(run: TestRun, path: string, body: unknown, headers?: Record<string, string>): Promise<void> {
  const response = await run.post(path, body, headers === undefined ? {} : { headers });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path} was refused: ${text}`);
}

const chat = (prompt: string) => ({ model: "up/echo", messages: [{ role: "user", content: prompt }] });

/** Calls to objects before an upstream has the first byte of a call, or of a batch. */
const CALL_HOPS = 1;
/** The opening's reply has the first claims. */
const BATCH_HOPS = 1;

/** The ways in for a single call, each with its request. */
const SINGLE_CALLS: [path: string, body: object][] = [
  ["/query", { prompt: "p", model: "up/echo" }],
  ["/v1/chat/completions", chat("p")],
  ["/v1/chat/completions", { ...chat("p"), stream: true }],
  ["/llm_query", { prompt: "p", model: "up/echo" }],
];

describe("a call", () => {
  it.each(SINGLE_CALLS)("to %s calls its run once before the upstream has it", async (path, body) => {
    const run = await openRun();
    for (const time of ["first", "second"]) {
      const { beforeUpstream } = await hopsOf(() => post(run, path, body));
      expect(beforeUpstream, time).not.toBeNull();
      expect(beforeUpstream?.length, time).toBeLessThanOrEqual(CALL_HOPS);
    }
  });

  it.each(SINGLE_CALLS)(
    "to %s calls no object before the upstream has it, inside leased credit",
    async (path, body) => {
      const run = await openRun({ budget: { usd: 100 }, max_parallel: 64, window_ms: 0 });
      const hops: (number | undefined)[] = [];
      for (let call = 0; call < 5 * CREDIT_AFTER_CALLS; call++)
        hops.push((await hopsOf(() => post(run, path, body))).beforeUpstream?.length);
      // Credit is requested after so many calls; a machine that stalls may return it in between.
      expect(hops.slice(0, CREDIT_AFTER_CALLS)).toEqual(Array(CREDIT_AFTER_CALLS).fill(CALL_HOPS));
      expect(hops).toContain(0);
      expect(
        hops.every((count) => count === 0 || count === CALL_HOPS),
        `${hops}`,
      ).toBe(true);
    },
  );
});

describe("a batch", () => {
  it.each([1, 1_000])(
    "of %d calls calls its run once before its first reaches the upstream",
    { tags: ["slow"] },
    async (count) => {
      const run = await openRun({ max_parallel: 64 });
      const { beforeUpstream } = await hopsOf(() => post(run, "/batch", { prompts: prompts(count), model: "up/echo" }));
      expect(beforeUpstream?.[0]).toBe("RunObject.openGroup");
      expect(beforeUpstream?.length).toBeLessThanOrEqual(BATCH_HOPS);
    },
  );

  it("of some megabytes makes one more, for all of its pages", { tags: ["slow"] }, async () => {
    const run = await openRun();
    const large = Array.from({ length: 5 }, () => "x".repeat(0.9 * PAGES_CALL_CHARS_MAX));
    const staged = { method: "stagePages", calls: large.length - 1 };
    const { beforeUpstream } = await hopsOf(() => post(run, "/batch", { prompts: large, model: "up/echo" }), staged);
    expect(beforeUpstream).toEqual(["RunObject.stagePages", "RunObject.openGroup"]);
  });
});

describe("the opening of a run", () => {
  it("calls its object, and its part of the list at the same time", async () => {
    const headers = { authorization: `Bearer ${ADMIN_KEY}`, "content-type": "application/json" };
    const send = () => exports.default.fetch("http://fanout.test/runs", { method: "POST", headers, body: "{}" });
    const { inAll } = await hopsOf(async () => expect((await send()).status).toBe(201));
    expect(inAll).toHaveLength(1);
  });

  it("inside another calls that one, which calls the child's object", async () => {
    const run = await openRun({ budget: { usd: 1 } });
    const { inAll } = await hopsOf(() => run.openChild({ budget: { usd: 0.5 } }));
    expect(inAll).toEqual(["RunObject.openChild", "RunObject.open"]);
  });
});

describe("the counter itself", () => {
  it("counts calls one after another, calls at once, and calls of calls", async () => {
    const run = await openRun();
    const stub = () => run.object;
    expect((await hopsOf(async () => (await stub().budget(), await stub().figures()))).inAll).toEqual([
      "RunObject.budget",
      "RunObject.figures",
    ]);
    expect((await hopsOf(() => Promise.all([stub().budget(), stub().figures()]))).inAll).toHaveLength(1);
    const nested = await hopsOf(async () => (await run.openChild(), await stub().budget()));
    expect(nested.inAll).toEqual(["RunObject.openChild", "RunObject.open", "RunObject.budget"]);
  });
});
