/** Which storms a seed draws. */
import type { Limits } from "./budget.ts";
import { PERSONALITIES, type Personality } from "./personalities.ts";
import { Random } from "./random.ts";
import type { StormPlan } from "./storm.ts";
import type { Mood } from "./texts.ts";

/** Which requests are drawn, and of whom. */
export type Drawn = {
  /** Personalities that are attacked; empty = all. */
  only: readonly string[];
  /** Share of requests with something foreign to its place. */
  foreign: number;
};

/** Storms of many requests, and probes of one: a probe hides no undercharged call behind an overcharged one. */
export function plansOf(
  seed: number,
  requests: number,
  runs: number,
  drawn: Drawn,
): { storms: StormPlan[]; probes: StormPlan[] } {
  const probeCount = Math.max(PERSONALITIES.length, Math.floor(requests / 20));
  const storms = Array.from({ length: runs }, (_, at) =>
    stormPlan(seed, 1_000 + at, Math.ceil((requests - probeCount) / runs), drawn),
  );
  const probes = Array.from({ length: probeCount }, (_, at) => probePlan(seed, 100_000 + at, drawn));
  return { storms, probes };
}

function stormPlan(seed: number, run: number, requests: number, drawn: Drawn): StormPlan {
  const random = new Random(seed, run, 1);
  const personality = personalityOf(run, drawn);
  const limits = limitsOf(random, requests * (personality.sees === undefined ? 1 : IMAGES_COST));
  return {
    ...{
      run,
      seed,
      limits,
      requests,
      personality,
      foreign: drawn.foreign,
      malice: random.pick([0.1, 0.3, 0.6]),
    },
    children: random.chance(0.2) ? childrenOf(random, limits) : [],
    width: random.pick([1, 4, 12, 32]),
    moodAt: moodOf(random),
  };
}

/** Runs of one batch file each. */
export function batchPlans(seed: number, count: number, lines: number, drawn: Drawn): StormPlan[] {
  const personalities = PERSONALITIES.filter(
    ({ kind, endings, name }) => isDrawn(name, drawn) && kind === "openai" && !endings.some(([end]) => end === "hang"),
  );
  return Array.from({ length: count }, (_, at) => {
    const run = 900_000 + at;
    const random = new Random(seed, run, 4);
    const personality = personalities[at % personalities.length];
    if (personality === undefined) throw new Error("no personality");
    return {
      ...stormPlan(seed, run, lines, drawn),
      personality,
      children: [],
      malice: random.pick([0, 0.2]),
      limits: limitsOf(random, lines),
    };
  });
}

/** One request in a run of its own. */
function probePlan(seed: number, run: number, drawn: Drawn): StormPlan {
  const random = new Random(seed, run, 2);
  const limits = random.chance(0.7) ? { usd: usdFrom(random, 0.0005, 2) } : limitsOf(random, 4);
  const mood = random.pick(["prose", "dense", "mixed"] as const);
  return {
    ...{ run, seed, limits, requests: 1, personality: personalityOf(run, drawn), malice: 0.7 },
    foreign: drawn.foreign,
    ...{ children: [], width: 1, moodAt: () => mood },
  };
}

/** How many times as much a request costs that may have images. */
const IMAGES_COST = 6;

function isDrawn(name: string, { only }: Drawn): boolean {
  return only.length === 0 || only.includes(name);
}

function personalityOf(run: number, drawn: Drawn): Personality {
  const personalities = PERSONALITIES.filter(({ name }) => isDrawn(name, drawn));
  const personality = personalities[run % personalities.length];
  if (personality === undefined) throw new Error("no personality");
  return personality;
}

/** USD that some calls cost when a call costs a tenth of a cent, more or less. */
function limitsOf(random: Random, requests: number): Limits {
  const share = 0.1 + 1.5 * random.fraction() ** 2;
  const usd = { usd: Number((requests * 0.0015 * share).toFixed(6)) };
  const tokens = {
    prompt_tokens: Math.ceil(requests * 900 * share),
    completion_tokens: Math.ceil(requests * 250 * share),
  };
  const calls = { calls: Math.ceil(requests * 0.7 * Math.max(0.2, share)) };
  return random.pick<Limits>([
    usd,
    usd,
    { ...usd, ...calls },
    { ...usd, ...tokens, ...calls },
    tokens,
    calls,
    { ...usd, ...tokens },
  ]);
}

function usdFrom(random: Random, min: number, max: number): number {
  return Number((min * (max / min) ** random.fraction()).toFixed(6));
}

function childrenOf(random: Random, limits: Limits): Limits[] {
  return Array.from({ length: random.integer(1, 3) }, () =>
    Object.fromEntries(
      Object.entries(limits).map(([dimension, limit]) => {
        const share = limit * (0.1 + 0.2 * random.fraction());
        return [dimension, dimension === "usd" ? Number(share.toFixed(6)) : Math.max(1, Math.floor(share))];
      }),
    ),
  );
}

function moodOf(random: Random): (place: number) => Mood {
  const mood = random.pick(["prose", "dense", "mixed", "turning"] as const);
  return mood === "turning" ? (place) => (place < 0.6 ? "prose" : "dense") : () => mood;
}
