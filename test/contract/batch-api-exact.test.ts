/** Two thousand lines: each is sent, answered, counted and charged once, even if the gateway is killed. */
import type { Batch } from "openai/resources/batches";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import {
  chatLine,
  completionOf,
  createBatch,
  endOf,
  PRICES,
  resultsOf,
  startBatchPlace,
  type BatchPlace,
  type BatchRun,
  type Results,
} from "./batch-place.ts";
import { documentOf } from "./world.ts";

const LINES = 2_000;
const WIDTH = 32;

/**
 * Moments at which the gateway is killed, each of them drawn anew: while the file is looked through and the first lines
 * are sent; in the middle; twice while what was in flight then is waited for, up to 25 s; and when all was sent and the
 * files are being made. `share` of the lines must have been sent, then so many ms pass.
 */
const KILLS: readonly { share: number; ms: number }[] = [
  { share: 0, ms: 200 },
  { share: 0.1 + 0.8 * Math.random(), ms: 100 },
  { share: 0, ms: 2_000 },
  { share: 0, ms: 2_000 },
  { share: 1, ms: 600 },
];

type Played = { place: BatchPlace; run: BatchRun; batch: Batch; output: Results; error: Results; seconds: number };

const ids = Array.from({ length: LINES }, (_, at) => `line-${at}`);
/** Every tenth line is one that its upstream refuses. */
const promptOf = (at: number, steering: string) => `${steering}${at % 10 === 3 ? "{{status/400}}" : ""} prompt ${at}`;

async function play(kills: typeof KILLS, delayMs: number): Promise<Played> {
  const place = await startBatchPlace();
  const run = await place.openRun({ max_parallel: WIDTH });
  const steering = `{{delay/${delayMs}}}`;
  const lines = ids.map((id, at) => chatLine(id, promptOf(at, steering), "up-1"));
  const startedMs = performance.now();
  const created = await createBatch(run, lines);
  for (const { share, ms } of kills) {
    await vi.waitUntil(() => place.upstream.counters.requests >= share * LINES, { interval: 5, timeout: 60_000 });
    await new Promise((resolve) => setTimeout(resolve, Math.random() * ms));
    await place.restart();
  }
  const batch = await endOf(run, created, 100_000);
  const seconds = (performance.now() - startedMs) / 1_000;
  return { place, run, batch, ...(await resultsOf(run, batch)), seconds };
}

const played = new Map<string, Played>();
beforeAll(async () => {
  const [left, killed] = await Promise.all([play([], 20), play(KILLS, 50)]);
  played.set("left alone", left).set("killed five times", killed);
}, 150_000);
afterAll(() => Promise.all([...played.values()].map(({ place }) => place.stop())));

describe.each(["left alone", "killed five times"])(
  "a batch of 2,000 lines whose gateway is %s",
  { tags: ["slow"] },
  (name) => {
    const now = (): Played => {
      const one = played.get(name);
      if (one === undefined) throw new Error(`nothing was played ${name}`);
      return one;
    };

    it("contains every line once, each with its own answer", () => {
      const { batch, output, error, seconds } = now();
      console.info(
        `${name}: ${LINES} lines in ${seconds.toFixed(1)} s, ${now().place.upstream.counters.requests} calls`,
      );
      expect(batch).toMatchObject({
        status: "completed",
        request_counts: { total: LINES, completed: LINES * 0.9, failed: LINES * 0.1 },
      });
      expect([...output.keys(), ...error.keys()].toSorted()).toEqual(ids.toSorted());
      ids.forEach((id, at) => {
        if (at % 10 === 3) expect(error.get(id)?.response?.status_code).toBe(400);
        else expect(completionOf(output.get(id)).text).toMatch(new RegExp(` prompt ${at}$`));
      });
    });

    it("reports the sum of the usage of its lines", () => {
      const { batch, output } = now();
      const used = [...output.values()].map(completionOf);
      const input_tokens = used.reduce((sum, { prompt }) => sum + prompt, 0);
      const output_tokens = used.reduce((sum, { completion }) => sum + completion, 0);
      expect(batch.usage).toMatchObject({ input_tokens, output_tokens, total_tokens: input_tokens + output_tokens });
    });

    it("sends each line to the provider once, except lines in flight at a kill", () => {
      const { counters } = now().place.upstream;
      const kills = name === "left alone" ? 0 : KILLS.length;
      expect(counters.sends.size).toBe(LINES);
      expect(counters.requests).toBeGreaterThanOrEqual(LINES);
      expect(counters.requests).toBeLessThanOrEqual(LINES + kills * WIDTH);
    });

    it("is charged what the provider billed, and leaves nothing reserved", async () => {
      const { run, batch } = now();
      const { budget } = await documentOf(run);
      const { input, output } = PRICES["*"];
      const billed = ((batch.usage?.input_tokens ?? 0) * input + (batch.usage?.output_tokens ?? 0) * output) / 1e6;
      expect([budget.usd.reserved, budget.calls.reserved]).toEqual([0, 0]);
      // What the provider refuses, it does not bill, but it answers: every line is a call.
      const answered = LINES;
      if (name === "left alone") {
        expect(budget.calls.spent).toBe(answered);
        expect(budget.usd.spent).toBeCloseTo(billed, 9);
        return;
      }
      // Calls in flight are charged at their reservations, because their outcome is unknown.
      expect(budget.usd.spent).toBeGreaterThanOrEqual(billed - 1e-9);
      expect(budget.calls.spent).toBeGreaterThanOrEqual(answered);
      expect(budget.calls.spent).toBeLessThanOrEqual(answered + KILLS.length * WIDTH);
    });
  },
);
