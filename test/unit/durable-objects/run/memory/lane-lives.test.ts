import { readFileSync } from "node:fs";
import { parse } from "smol-toml";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { LaneLives } from "../../../../../durable-objects/run/memory/lane-lives.ts";
import { LANE_LIFE_MS, LANE_REST_MS, LONG_POLL_MS, PARALLEL_MAX, TIMEOUT_MS_MAX } from "../../../../../src/limits.ts";

const START_MS = 1_700_000_000_000;
/** Lives under a fake clock. */
function livesOf(random: () => number) {
  let clockMs = START_MS;
  const lives = new LaneLives({ now: () => clockMs, random });
  const at = (nowMs: number): LaneLives => {
    clockMs = nowMs;
    return lives;
  };
  return {
    mayClaim: (lane: number, isBusy: boolean, nowMs: number) => at(nowMs).mayClaim(lane, isBusy),
    isRetired: (lane: number, nowMs: number) => at(nowMs).isRetired(lane),
    numbers: (count: number, hasLeases: (lane: number) => boolean, nowMs: number) =>
      at(nowMs).numbers(count, hasLeases),
  };
}
type Lives = ReturnType<typeof livesOf>;
const longest = (): Lives => livesOf(() => 1);
const noLeases = (): boolean => false;

describe("a lane", () => {
  it.each([
    ["half of the longest life", 0, LANE_LIFE_MS / 2],
    ["three quarters", 0.5, (LANE_LIFE_MS * 3) / 4],
  ])("claims for %s, by the number that it draws", (_, drawn, lifeMs) => {
    const lives = livesOf(() => drawn);
    expect(lives.mayClaim(0, true, START_MS)).toBe(true);
    expect(lives.mayClaim(0, true, START_MS + lifeMs - 1)).toBe(true);
    expect(lives.isRetired(0, START_MS + lifeMs - 1)).toBe(false);
    expect(lives.mayClaim(0, true, START_MS + lifeMs)).toBe(false);
    expect(lives.isRetired(0, START_MS + lifeMs)).toBe(true);
  });

  it("stays retired while it settles its calls, however long they take", () => {
    const lives = longest();
    lives.mayClaim(0, false, START_MS);
    for (let ms = LANE_LIFE_MS; ms < LANE_LIFE_MS + TIMEOUT_MS_MAX; ms += LANE_REST_MS * 2)
      expect(lives.mayClaim(0, true, START_MS + ms)).toBe(false);
  });

  it("begins a new life when it was idle for long enough to get the present code, and not before", () => {
    const lives = longest();
    lives.mayClaim(0, false, START_MS);
    const endMs = START_MS + LANE_LIFE_MS;
    expect(lives.mayClaim(0, true, endMs)).toBe(false);
    expect(lives.mayClaim(0, false, endMs + LANE_REST_MS - 1)).toBe(false);
    const idleFromMs = endMs + LANE_REST_MS - 1;
    expect(lives.mayClaim(0, false, idleFromMs + LANE_REST_MS)).toBe(true);
    expect(lives.isRetired(0, idleFromMs + LANE_REST_MS + LANE_LIFE_MS - 1)).toBe(false);
  });

  it("that waits for work has one life, although it settles nothing", () => {
    const lives = longest();
    let mayClaim = true;
    let ms = 0;
    for (; mayClaim; ms += LONG_POLL_MS) mayClaim = lives.mayClaim(0, false, START_MS + ms);
    expect(ms).toBeLessThanOrEqual(LANE_LIFE_MS + 2 * LONG_POLL_MS);
  });
});

describe("the numbers of lanes that may claim", () => {
  const claimedAll = (lives: Lives, lanes: number, nowMs: number): void => {
    for (let lane = 0; lane < lanes; lane++) lives.mayClaim(lane, true, nowMs);
  };

  it("are the lowest, and leave out a retired lane until it has rested without leases", () => {
    const lives = longest();
    claimedAll(lives, 1, START_MS);
    lives.mayClaim(1, true, START_MS + 1_000);
    const endMs = START_MS + LANE_LIFE_MS;
    expect(lives.numbers(2, noLeases, endMs - 1)).toEqual([0, 1]);
    lives.mayClaim(0, true, endMs);
    expect(lives.numbers(2, noLeases, endMs)).toEqual([1, 2]);
    const hasLeases = (lane: number): boolean => lane === 0;
    expect(lives.numbers(2, hasLeases, endMs + LANE_REST_MS)).not.toContain(0);
    expect(lives.numbers(2, noLeases, endMs + LANE_REST_MS)).toContain(0);
  });

  it("differ in when they end, so that a run replaces one lane after the other", () => {
    let drawn = 0;
    const lives = livesOf(() => (drawn = (drawn + 0.37) % 1));
    claimedAll(lives, 16, START_MS);
    const retired: number[] = [];
    for (let ms = 0; ms <= LANE_LIFE_MS; ms += 1_000) {
      const now = START_MS + ms;
      claimedAll(lives, 16, now);
      retired.push([...Array(16).keys()].filter((lane) => lives.isRetired(lane, now)).length);
    }
    const together = retired.map((count, at) => count - (retired[at - 1] ?? 0));
    expect(retired.at(-1)).toBe(16);
    expect(Math.max(...together)).toBeLessThanOrEqual(2);
  });

  it("stay below those of single calls' shards even if every attempt outlives its lane", () => {
    const lives = livesOf(() => 0);
    const held = new Set<number>();
    let highest = 0;
    // One attempt of each lane that ends its life goes on; the run is as wide as it can be, with six attempts a lane.
    for (let nowMs = START_MS; nowMs < START_MS + TIMEOUT_MS_MAX; nowMs += 10_000) {
      const left = PARALLEL_MAX - held.size;
      for (const lane of lives.numbers(Math.ceil(left / 6), (at) => held.has(at), nowMs)) {
        highest = Math.max(highest, lane);
        if (!lives.mayClaim(lane, true, nowMs)) held.add(lane);
      }
    }
    expect(held.size).toBeGreaterThan(100);
    expect(highest).toBeLessThan(1_000);
  });
});

describe("a run that wants more lanes than there are numbers", () => {
  it("gets those below the shards of single calls", () => {
    expect(longest().numbers(1_001, noLeases, START_MS)).toEqual([...Array(1_000).keys()]);
  });
});

describe("the deploy strategy of wrangler.toml", () => {
  const strategy = z.object({ mode: z.string(), max_delay: z.number() });
  const toml = z.looseObject({ durable_objects: z.looseObject({ code_update_strategy: strategy }) });
  const { mode, max_delay: maxDelayS } = toml.parse(parse(readFileSync("wrangler.toml", "utf8"))).durable_objects
    .code_update_strategy;

  it("waits until every lane has ended its life, its longest call and its rest", () => {
    expect(mode).toBe("deferred");
    expect(maxDelayS * 1_000).toBeGreaterThanOrEqual(LANE_LIFE_MS + TIMEOUT_MS_MAX + LANE_REST_MS);
    // The most that Cloudflare accepts.
    expect(maxDelayS).toBeLessThanOrEqual(86_400);
  });
});
