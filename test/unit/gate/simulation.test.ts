/** The figures that a gate must reach, in a simulation of runs and providers with a fake clock. Nothing here takes real time. */
import { describe, expect, it } from "vitest";
import {
  anthropicLike,
  callingItOverload,
  concurrencyLimited,
  failingAtRandom,
  openaiBySecond,
  openaiLike,
  queueing,
  rateLimitedSilently,
  slidingWindow,
  unlimited,
  whileUsable,
  type Provider,
} from "../../support/gate-providers.ts";
import { World, type RunPlan } from "../../support/gate-world.ts";

/** Seeds of the latencies: what holds by luck for one does not for all. */
const SEEDS = [1, 7, 1_234, 99_991];
const MEAN_MS = 300;

const endOf = (world: World): number => Math.max(...world.runs.flatMap(({ done }) => done.map(({ atMs }) => atMs)));
/** Calls of a run that were done by a time. */
const doneBy = (world: World, run: number, atMs: number): number =>
  world.runs[run]?.done.filter((one) => one.atMs <= atMs).length ?? 0;
/** The value below which nineteen of twenty are. */
const p95 = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.ceil(values.length * 0.95) - 1] ?? 0;

describe("two runs and a /query run on a key with limits in its headers", () => {
  const query: RunPlan = { id: "q", calls: 20, workClass: "interactive", everyMs: 1_000 };
  type Case = { provider: () => Provider; fields: Partial<RunPlan>; idealMs: number };
  const cases: Record<string, Case> = {
    // 920 calls, of which 600 at once, the others at ten a second.
    "requests, as OpenAI's": { provider: () => openaiLike(600, 1e9), fields: {}, idealMs: 32_000 + MEAN_MS },
    // 920 calls of 100 tokens, of which 60,000 at once, the others at a thousand a second.
    "tokens, as OpenAI's": { provider: () => openaiLike(1e6, 60_000), fields: {}, idealMs: 32_000 + MEAN_MS },
    "tokens that the runs count three times": {
      provider: () => openaiLike(1e6, 60_000),
      fields: { believedTokens: 300 },
      idealMs: 32_000 + MEAN_MS,
    },
    "tokens that the runs count by a third": {
      provider: () => openaiLike(1e6, 60_000),
      fields: { believedTokens: 33 },
      idealMs: 32_000 + MEAN_MS,
    },
    "requests, as Anthropic's": {
      provider: () => anthropicLike(600, 1e9, 1e9),
      fields: {},
      idealMs: 32_000 + MEAN_MS,
    },
    // 920 calls with 50 tokens of output, of which 20,000 at once, the others at a third of a thousand a second.
    "output tokens, as Anthropic's, a tenth of the cap": {
      provider: () => anthropicLike(1e6, 1e9, 20_000),
      fields: { tokens: 600, inputTokens: 100, outputTokens: 50 },
      idealMs: 78_000 + MEAN_MS,
    },
    // 920 calls with 100 tokens of input.
    "input tokens, as Anthropic's": {
      provider: () => anthropicLike(1e6, 60_000, 1e9),
      fields: { tokens: 600, inputTokens: 100, outputTokens: 50 },
      idealMs: 32_000 + MEAN_MS,
    },
  };

  describe.each(Object.entries(cases))("%s", (_name, { provider, fields, idealMs }) => {
    it.each(SEEDS)(
      "wastes at most 0.01 of the calls after the first second, and takes 1.15 times the ideal time (seed %d)",
      (seed) => {
        const batch = { calls: 450, ...fields };
        const runs = [
          { id: "a", ...batch },
          { id: "b", ...batch },
          { ...query, ...fields },
        ];
        const world = new World({ provider: provider(), runs, seed });
        world.runUntil(300_000);
        expect(world.isDone).toBe(true);
        const { rejected, sent } = world.rejectedAfter(1_000);
        expect(rejected / sent).toBeLessThanOrEqual(0.01);
        expect(endOf(world)).toBeLessThanOrEqual(idealMs * 1.15);
        // Goodput of the whole: what was done in the ideal time and a twentieth.
        expect(world.doneBy(idealMs * 1.05)).toBeGreaterThanOrEqual(920 * 0.95);
        // Two equal runs: at half of the time, and at the end.
        const halfMs = endOf(world) / 2;
        expect(doneBy(world, 0, halfMs) / doneBy(world, 1, halfMs)).toBeGreaterThan(0.95);
        expect(doneBy(world, 0, halfMs) / doneBy(world, 1, halfMs)).toBeLessThan(1.05);
      },
    );
  });

  it.each(SEEDS)("lets a /query wait at most one call's time at p95, beside a batch of 10,000 (seed %d)", (seed) => {
    const runs: RunPlan[] = [
      { id: "batch", calls: 10_000, workClass: "standard" },
      { ...query, calls: 60 },
    ];
    const world = new World({ provider: openaiLike(1_200, 1e9), runs, seed });
    world.runUntil(60_500);
    const waits = world.runs[1]?.done.map(({ waitedMs }) => waitedMs) ?? [];
    expect(waits.length).toBeGreaterThanOrEqual(58);
    expect(p95(waits)).toBeLessThanOrEqual(MEAN_MS);
  });

  it("continues when replies of the gate are lost", () => {
    const runs = [
      { id: "a", calls: 450 },
      { id: "b", calls: 450 },
    ];
    const world = new World({ provider: openaiLike(600, 1e9), runs, lostReplies: 0.2 });
    world.runUntil(300_000);
    expect(world.isDone).toBe(true);
    const { rejected, sent } = world.rejectedAfter(1_000);
    expect(rejected / sent).toBeLessThanOrEqual(0.02);
    expect(endOf(world)).toBeLessThanOrEqual(30_300 * 1.15);
  });
});

describe("a key limited by tokens in windows of a second, whose provider counts 440 tokens that the runs do not see", () => {
  const call = { tokens: 600, inputTokens: 584, outputTokens: 16, believedTokens: 160, believedInputTokens: 144 };

  it.each(SEEDS)(
    "wastes at most 0.02 of the calls after the first second, and uses 0.95 of its limit (seed %d)",
    (seed) => {
      const runs: RunPlan[] = ["a", "b"].map((id) => ({ id, calls: 500, ...call }));
      const world = new World({ provider: openaiBySecond(1e6, 600_000), runs, seed });
      world.runUntil(120_000);
      expect(world.isDone).toBe(true);
      const { rejected, sent } = world.rejectedAfter(1_000);
      expect(rejected / sent).toBeLessThanOrEqual(0.02);
      // A thousand calls of 600 tokens, ten thousand tokens a second.
      expect(world.nowMs).toBeLessThanOrEqual(60_000 / 0.95);
    },
  );

  it.each(SEEDS)("has hardly any call rejected in later batches, each after a pause (seed %d)", (seed) => {
    const apartMs = 16_000;
    const runs = Array.from({ length: 6 }, (_, at): RunPlan => ({
      id: `r${at}`,
      calls: 100,
      startMs: at * apartMs,
      ...call,
    }));
    const world = new World({ provider: openaiBySecond(1e6, 600_000), runs, seed });
    world.runUntil(200_000);
    expect(world.isDone).toBe(true);
    const { rejected, sent } = world.rejectedAfter(apartMs - 1);
    expect(rejected / sent).toBeLessThanOrEqual(0.02);
  });
});

describe("a server that only answers 429", () => {
  it.each(SEEDS)("is used by at least 0.85 of its capacity within 20 s: so many at a time (seed %d)", (seed) => {
    const runs = [
      { id: "a", calls: 2_000 },
      { id: "b", calls: 2_000 },
    ];
    const world = new World({ provider: concurrencyLimited(() => 20), runs, seed });
    world.runUntil(40_000);
    // 20 at a time, of 305 ms each.
    const capacity = (20 / (MEAN_MS + 5)) * 20_000;
    expect(world.doneBy(40_000, 20_000)).toBeGreaterThanOrEqual(capacity * 0.85);
    const { rejected, sent } = world.rejectedAfter(20_000);
    expect(rejected / sent).toBeLessThanOrEqual(0.05);
    const [a, b] = [doneBy(world, 0, 40_000), doneBy(world, 1, 40_000)];
    expect(Math.abs(a - b) / a).toBeLessThan(0.05);
  });

  it.each([2, 5, 20, 100])("is used by at least 0.85 of its capacity within 20 s: %d a second", (perSecond) => {
    const runs = [
      { id: "a", calls: 5_000, latencyMs: () => 80 },
      { id: "b", calls: 5_000, latencyMs: () => 80 },
    ];
    const world = new World({ provider: rateLimitedSilently(perSecond), runs });
    world.runUntil(60_000);
    expect(world.doneBy(60_000, 20_000)).toBeGreaterThanOrEqual(perSecond * 40 * 0.85);
    const { rejected, sent } = world.rejectedAfter(20_000);
    expect(rejected / sent).toBeLessThanOrEqual(0.15);
  });

  it.each([60, 200])(
    "is used by at least 0.85 of its capacity within 20 s: %d in any second, in bursts",
    (perSecond) => {
      const runs = [
        { id: "a", calls: 9_000, latencyMs: () => 100 },
        { id: "b", calls: 9_000, latencyMs: () => 100 },
      ];
      const world = new World({ provider: slidingWindow(perSecond), runs });
      world.runUntil(60_000);
      expect(world.doneBy(60_000, 20_000)).toBeGreaterThanOrEqual(perSecond * 40 * 0.85);
    },
  );

  it.each(SEEDS)("is used as well if it calls that an overload: 503 (seed %d)", (seed) => {
    const runs = [
      { id: "a", calls: 2_000 },
      { id: "b", calls: 2_000 },
    ];
    const world = new World({ provider: callingItOverload(concurrencyLimited(() => 20)), runs, seed });
    world.runUntil(40_000);
    const capacity = (20 / (MEAN_MS + 5)) * 20_000;
    expect(world.doneBy(40_000, 20_000)).toBeGreaterThanOrEqual(capacity * 0.85);
    const { rejected, sent } = world.rejectedAfter(20_000);
    expect(rejected / sent).toBeLessThanOrEqual(0.1);
  });

  it("is followed when its capacity falls to a quarter, and when it comes back", () => {
    const capacityAt = (nowMs: number): number => (nowMs > 20_000 && nowMs <= 40_000 ? 5 : 20);
    const world: World = new World({
      provider: concurrencyLimited(() => capacityAt(world.nowMs)),
      runs: [{ id: "a", calls: 10_000 }],
    });
    world.runUntil(90_000);
    expect(world.doneBy(40_000, 30_000)).toBeGreaterThanOrEqual((5 / 0.305) * 10 * 0.85);
    expect(world.doneBy(90_000, 60_000)).toBeGreaterThanOrEqual((20 / 0.305) * 30 * 0.85);
  });

  it("is used by weight: a run of weight 3 does three times as much", () => {
    const runs = [
      { id: "a", calls: 5_000, weight: 3 },
      { id: "b", calls: 5_000 },
    ];
    const world = new World({ provider: concurrencyLimited(() => 20), runs });
    world.runUntil(40_000);
    const ratio =
      (doneBy(world, 0, 40_000) - doneBy(world, 0, 10_000)) / (doneBy(world, 1, 40_000) - doneBy(world, 1, 10_000));
    expect(ratio).toBeGreaterThan(2.7);
    expect(ratio).toBeLessThan(3.3);
  });
});

describe("a server that fails three calls in a hundred as overloaded, however many there are", () => {
  it.each(SEEDS)("is used nearly as much as one that fails none (seed %d)", { tags: ["slow"] }, (seed) => {
    const runs = [{ id: "a", calls: 30_000 }];
    const faultless = new World({ provider: failingAtRandom(0, seed), runs, seed });
    const faulty = new World({ provider: failingAtRandom(0.03, seed), runs, seed });
    for (const world of [faultless, faulty]) world.runUntil(60_000);
    expect(faulty.doneBy(60_000, 0)).toBeGreaterThanOrEqual(faultless.doneBy(60_000, 0) * 0.85);
  });
});

describe("a server that queues what is too much", () => {
  it("gets about as much as it can work on, and is as fast as ever", () => {
    const runs: RunPlan[] = [
      { id: "first", calls: 20, latencyMs: () => MEAN_MS, width: 4 },
      { id: "a", calls: 2_000, startMs: 5_000, latencyMs: () => MEAN_MS },
    ];
    const world = new World({ provider: queueing(() => 10), runs });
    const widths: number[] = [];
    world.runUntil(60_000, (nowMs) => {
      if (nowMs >= 12_000) widths.push(world.runs[1]?.inFlight ?? 0);
    });
    expect(world.doneBy(60_000, 20_000)).toBeGreaterThanOrEqual((10 / 0.3) * 40 * 0.95);
    const mean = widths.reduce((sum, width) => sum + width, 0) / widths.length;
    expect(mean).toBeLessThan(30);
  });

  it.each([4, 10, 20])(
    "is used to its capacity of %d by a batch that begins with more, with few calls in its queue",
    (capacity) => {
      const runs: RunPlan[] = [
        { id: "a", calls: 9_000, latencyMs: () => MEAN_MS },
        { id: "b", calls: 9_000, latencyMs: () => MEAN_MS, startMs: 15_000 },
      ];
      const world = new World({ provider: queueing(() => capacity), runs });
      const inFlight: number[] = [];
      world.runUntil(90_000, (nowMs) => {
        if (nowMs >= 30_000) inFlight.push(world.runs.reduce((sum, run) => sum + run.inFlight, 0));
      });
      expect(world.doneBy(90_000, 30_000)).toBeGreaterThanOrEqual((capacity / (MEAN_MS / 1_000)) * 60 * 0.95);
      const mean = inFlight.reduce((sum, each) => sum + each, 0) / inFlight.length;
      expect(mean).toBeLessThan(3 * capacity);
    },
  );

  it("is followed when its capacity grows to four times as much, and when it shrinks again", { tags: ["slow"] }, () => {
    const provider = queueing((nowMs) => (nowMs > 30_000 && nowMs <= 80_000 ? 40 : 10));
    const world = new World({ provider, runs: [{ id: "a", calls: 20_000, latencyMs: () => MEAN_MS }] });
    const inFlight: number[] = [];
    world.runUntil(140_000, (nowMs) => {
      if (nowMs >= 100_000) inFlight.push(world.runs[0]?.inFlight ?? 0);
    });
    expect(world.doneBy(80_000, 50_000)).toBeGreaterThanOrEqual((40 / 0.305) * 30 * 0.9);
    expect(world.doneBy(140_000, 100_000)).toBeGreaterThanOrEqual((10 / 0.305) * 40 * 0.95);
    expect(inFlight.reduce((sum, each) => sum + each, 0) / inFlight.length).toBeLessThan(30);
  });

  it("is not taken for loaded because its later calls are long", () => {
    const slow = concurrencyLimited(() => 1_000);
    const provider: Provider = {
      ...slow,
      send: (call, nowMs) => ({ ...slow.send(call, nowMs), ttfbMs: call.latencyMs * 0.8 }),
    };
    const runs: RunPlan[] = [
      { id: "short", calls: 200, latencyMs: () => 100, width: 8 },
      { id: "long", calls: 640, startMs: 4_000, latencyMs: () => 2_000 },
    ];
    const world = new World({ provider, runs });
    world.runUntil(100_000);
    // Ten rounds of 64 take 20 s; looking whether fewer are faster costs less than half of that once.
    expect(endOf(world)).toBeLessThan(4_000 + 20_000 + 10_000);
  });
});

describe("a server with room for all that begins its answers late", () => {
  /** Whether its width was ever limited while a run made its calls there. */
  const isEverShrunk = (provider: Provider, run: Partial<RunPlan>, seed: number): boolean => {
    const runs: RunPlan[] = [{ id: "a", calls: 3_000, latencyMs: () => 1_000, ...run }];
    const world = new World({ provider, runs, seed });
    let isShrunk = false;
    world.runUntil(600_000, (nowMs) => (isShrunk ||= world.gate.status(nowMs).width !== null));
    expect(world.isDone).toBe(true);
    return isShrunk;
  };
  /** Uniform in [0, 1), the same for a seed. */
  const randomOf = (seed: number) => {
    let state = seed;
    return (): number => {
      state = (state * 48_271) % 2_147_483_647;
      return state / 2_147_483_647;
    };
  };

  it.each([100, 2_000, 8_000])("is never shrunk: always after %d ms", (ttfbMs) => {
    expect(
      isEverShrunk(
        unlimited(() => ttfbMs),
        {},
        1,
      ),
    ).toBe(false);
  });

  it.each(SEEDS)("is never shrunk: times that vary by their nature (seed %d)", (seed) => {
    const random = randomOf(seed);
    const gauss = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    expect(
      isEverShrunk(
        unlimited(() => 500 * Math.exp(0.5 * gauss())),
        {},
        seed,
      ),
    ).toBe(false);
  });

  it.each(SEEDS)("is never shrunk: prompts of all sizes, from 50 to 20,000 tokens (seed %d)", (seed) => {
    const random = randomOf(seed);
    const promptOf = () => 50 * 400 ** random();
    expect(
      isEverShrunk(
        unlimited(({ inputTokens }) => 100 + inputTokens * 0.2),
        { promptOf },
        seed,
      ),
    ).toBe(false);
  });

  it("is never shrunk: prompts that become longer with each call", () => {
    let tokens = 100;
    const promptOf = () => (tokens += 5);
    expect(
      isEverShrunk(
        unlimited(({ inputTokens }) => 100 + inputTokens * 0.2),
        { promptOf },
        1,
      ),
    ).toBe(false);
  });

  it("loses less than a tenth of a minute in which it is slow for its own reasons", () => {
    const provider = unlimited((_, nowMs) => (nowMs > 30_000 && nowMs <= 90_000 ? 2_000 : 500));
    const world = new World({ provider, runs: [{ id: "a", calls: 9_000, latencyMs: () => 1_000 }] });
    world.runUntil(120_000);
    expect(world.doneBy(90_000, 30_000)).toBeGreaterThanOrEqual((64 / 3.005) * 60 * 0.9);
    expect(world.doneBy(120_000, 95_000)).toBeGreaterThanOrEqual((64 / 1.505) * 25 * 0.95);
  });
});

describe("a key whose quota is gone", () => {
  const usableAt = (nowMs: number): boolean => nowMs < 2_000 || nowMs > 50_000;

  it("gets no more calls than were in flight, and a probe at a time; all is done once it recovers", () => {
    const world = new World({
      provider: whileUsable(openaiLike(1e6, 1e9), usableAt),
      runs: [{ id: "a", calls: 1_000, width: 32 }],
    });
    world.runUntil(300_000);
    expect(world.isDone).toBe(true);
    const refused = world.sent.filter(({ status }) => status === 402);
    const probes = refused.filter(({ atMs }) => atMs > 3_000);
    expect(refused.length - probes.length).toBeLessThanOrEqual(32);
    expect(probes.length).toBeLessThanOrEqual(4);
    expect(endOf(world)).toBeLessThan(50_000 + 61_000 + 15_000);
  });

  it("stays stopped over a restart of the gate's object", () => {
    const world = new World({
      provider: whileUsable(openaiLike(1e6, 1e9), usableAt),
      runs: [{ id: "a", calls: 1_000, width: 32 }],
    });
    world.runUntil(300_000, (nowMs) => {
      if (nowMs > 5_000 && nowMs < 45_000 && nowMs % 5_000 === 0) world.restartGate();
    });
    expect(world.isDone).toBe(true);
    expect(world.sent.filter(({ status }) => status === 402).length).toBeLessThanOrEqual(32 + 20);
  });
});

describe("classes of work", () => {
  it("share a rate 70 to 25 to 5 when all of them wait, and none starves", () => {
    const classes = ["interactive", "standard", "batch"] as const;
    const runs = classes.map((workClass) => ({ id: workClass, calls: 5_000, workClass }));
    const world = new World({ provider: openaiLike(1_200, 1e9), runs });
    world.runUntil(190_000);
    const done = world.runs.map((_, run) => doneBy(world, run, 190_000) - doneBy(world, run, 70_000));
    const sum = done.reduce((total, one) => total + one, 0);
    const shares = done.map((one) => one / sum);
    expect(shares[0]).toBeCloseTo(0.7, 1);
    expect(shares[1]).toBeCloseTo(0.25, 1);
    expect(shares[2]).toBeGreaterThan(0.03);
    expect(sum).toBeGreaterThanOrEqual(1_200 * 2 * 0.95);
  });

  it("leave all of a rate to a run that is alone", () => {
    const runs = [{ id: "a", calls: 1_200, workClass: "batch" as const }];
    const world = new World({ provider: openaiLike(600, 1e9), runs });
    world.runUntil(300_000);
    expect(endOf(world)).toBeLessThanOrEqual((60_000 + MEAN_MS) * 1.05);
  });

  it("give each of twenty runs its part", () => {
    const runs = Array.from({ length: 20 }, (_, index) => ({ id: `r${index}`, calls: 100 }));
    const world = new World({ provider: openaiLike(600, 1e9), runs });
    world.runUntil(100_000);
    const done = world.runs.map((_, run) => doneBy(world, run, 100_000));
    expect(Math.max(...done) - Math.min(...done)).toBeLessThanOrEqual(6);
    expect(done.reduce((sum, one) => sum + one, 0)).toBeGreaterThanOrEqual(1_550);
  });
});

describe("a gate whose object is restarted twenty times under load", () => {
  it("never has more permits out than the width, and loses none for longer than they last", () => {
    const world = new World({
      provider: concurrencyLimited(() => 20),
      runs: [
        { id: "a", calls: 3_000 },
        { id: "b", calls: 3_000 },
      ],
    });
    let restarts = 0;
    let most = 0;
    world.runUntil(70_000, (nowMs) => {
      if (nowMs >= 10_000 && nowMs % 1_500 === 0 && restarts < 20) {
        restarts += 1;
        world.restartGate();
      }
      // Calls that are on their way back are in flight for the runs, and not for the provider.
      if (nowMs >= 10_000)
        most = Math.max(
          most,
          world.runs.reduce((sum, run) => sum + run.inFlight, 0),
        );
    });
    expect(restarts).toBe(20);
    expect(most).toBeLessThanOrEqual(26);
    const capacity = 20 / 0.305;
    expect(world.doneBy(40_000, 10_000)).toBeGreaterThanOrEqual(capacity * 30 * 0.8);
    expect(world.doneBy(70_000, 50_000)).toBeGreaterThanOrEqual(capacity * 20 * 0.85);
  });

  it("keeps the rate", () => {
    const world = new World({
      provider: openaiLike(600, 1e9),
      runs: [
        { id: "a", calls: 450 },
        { id: "b", calls: 450 },
      ],
    });
    let restarts = 0;
    world.runUntil(120_000, (nowMs) => {
      if (nowMs >= 2_000 && nowMs % 1_300 === 0 && restarts < 20) {
        restarts += 1;
        world.restartGate();
      }
    });
    expect([world.isDone, restarts]).toEqual([true, 20]);
    const { rejected, sent } = world.rejectedAfter(1_000);
    expect(rejected / sent).toBeLessThanOrEqual(0.05);
    expect(endOf(world)).toBeLessThanOrEqual(30_300 * 1.3);
  });
});
