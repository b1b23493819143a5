/** A whole campaign: each personality is met once, then come storms and probes. */
import { setTimeout } from "node:timers/promises";
import { TEMPLATES_FRESH_MS } from "../../src/limits.ts";
import { modelsOf, PERSONALITIES, type Personality } from "./personalities.ts";
import { LIE, sourceOf, TINY } from "./pictures.ts";
import { batchStorm, startBatchGateway } from "./batches.ts";
import { knownPlans } from "./known.ts";
import { batchPlans, plansOf, type Drawn } from "./plans.ts";
import { storm, type StormPlan, type StormResult } from "./storm.ts";
import { faultsOf, type Fault } from "./verdict.ts";
import { before, startWorld, type StartGateway, type World } from "./world.ts";
import { objectOf, write } from "./json-text.ts";
import { markerOf } from "./mock.ts";
import type { HostileRequest } from "./grammar.ts";
import { RUN_NUMBERS } from "./storm.ts";

export type CampaignOptions = {
  requests: number;
  seed: number;
  runs: number;
  /** Storms at once. */
  abreast: number;
  /** Batch files, of `LINES` lines each, before a gateway with R2; 0 = none. */
  batches: number;
  drawn?: Drawn;
  start?: StartGateway;
  progress?: (line: string) => void;
};

export type Campaign = {
  faults: Fault[];
  /** Names of the known holes that are open. */
  holes: string[];
  results: StormResult[];
  calls: number;
  runs: number;
  upstreamRequests: number;
  unmarked: readonly string[];
  knows: readonly string[];
  seconds: number;
};

/** Share of requests with something foreign to its place. */
export const FOREIGN_SHARE = 0.1;
/** Attempts of one call. */
const ATTEMPTS_MAX = 2;
/** First calls of one personality, at most. */
const MEETING_RUNS = 16;
/** The number of the first run that shows a known hole: behind those of all first calls, before those of storms. */
const KNOWN_FROM = 900;
/** Runs that must have seen a template before the others know it. */
const MEETINGS_OF_EACH = 2;
/** Personalities that are met at once. */
const MEETINGS = 6;
/** Time after which all runs know what first calls have shown: a run reads that once in a while, from what its isolate has read. */
const KNOWN_AFTER_MS = 2 * TEMPLATES_FRESH_MS;
/** Lines of a batch file. */
const LINES = 40;

export async function campaign(options: CampaignOptions): Promise<Campaign> {
  const startedMs = performance.now();
  const world = await startWorld(options.seed, ATTEMPTS_MAX, options.start);
  try {
    const { drawn = { only: [], foreign: FOREIGN_SHARE } } = options;
    const { storms, probes } = plansOf(options.seed, options.requests, options.runs, drawn);
    const faults: Fault[] = [];
    const results: StormResult[] = [];
    const holes: string[] = [];
    const report = (line: string) =>
      options.progress?.(`${((performance.now() - startedMs) / 1_000).toFixed(1)} s: ${line}`);
    const take = (result: StormResult, found: Fault[]): void => {
      faults.push(...found);
      results.push({ ...result, sent: [] });
      for (const { number } of result.runs) world.mock.accountOf(number).entries = [];
    };
    for (const result of await meet(world, options.seed, 1)) take(result, faultsOf(result, world.mock, 1));
    report(`${results.length} first calls, ${faults.length} faults`);
    const knownAtMs = performance.now() + KNOWN_AFTER_MS;
    for (const { name, plan, request } of knownPlans(options.seed, KNOWN_FROM)) {
      const result = await storm(world, plan, request);
      const found = faultsOf(result, world.mock).map((fault) => ({ ...fault, what: `${name}; ${fault.what}` }));
      if (found.length > 0) holes.push(name);
      take(result, found);
    }
    report(`known holes, open: ${holes.length}`);
    await setTimeout(Math.max(0, knownAtMs - performance.now()));
    await pool(options.abreast, storms, async (plan) => {
      take(...(await judged(world, plan)));
      if (results.length % 50 === 0) report(`${results.length} runs, ${faults.length} faults`);
    });
    report(`${storms.length} storms, ${faults.length} faults`);
    await pool(options.abreast * 4, probes, async (plan) => take(...(await judged(world, plan))));
    report(`${probes.length} probes, ${faults.length} faults`);
    if (options.batches > 0) {
      const gateway = await before(world.mock, world.knows, ATTEMPTS_MAX, startBatchGateway);
      try {
        const other = { ...world, gateway };
        for (const result of await meet(other, options.seed, 950_000)) take(result, faultsOf(result, world.mock, 1));
        await setTimeout(KNOWN_AFTER_MS);
        await pool(3, batchPlans(options.seed, options.batches, LINES, drawn), async (plan) => {
          const result = await batchStorm(gateway, plan);
          take(result, faultsOf(result, world.mock));
        });
      } finally {
        await gateway.stop();
      }
      report(`${options.batches} batches, ${faults.length} faults`);
    }
    return {
      ...{ faults, holes, results, calls: results.reduce((sum, { calls }) => sum + calls, 0), runs: results.length },
      ...{ upstreamRequests: world.mock.requests, unmarked: world.mock.unmarked, knows: [...world.knows] },
      seconds: (performance.now() - startedMs) / 1_000,
    };
  } finally {
    await world.stop();
  }
}

async function judged(world: World, plan: StormPlan): Promise<[StormResult, Fault[]]> {
  const result = await storm(world, plan);
  return [result, faultsOf(result, world.mock)];
}

/**
 * The first calls of each template: at each endpoint without tools and with them, one after the other, on each model, each in
 * two runs. They may overrun, once each, because this upstream's template overhead is not known yet.
 */
async function meet(world: World, seed: number, from: number): Promise<StormResult[]> {
  const results: StormResult[] = [];
  await pool(MEETINGS, [...PERSONALITIES.entries()], async ([at, personality]) => {
    const limits = { usd: 5, prompt_tokens: 100_000, completion_tokens: 100_000, calls: 50 };
    let run = from + MEETING_RUNS * at;
    for (const model of modelsOf(personality)) {
      for (const { tools, picture } of shapesOf(personality)) {
        for (const path of personality.kind === "anthropic" ? ["/v1/messages"] : OPENAI_PATHS) {
          for (let times = 0; times < MEETINGS_OF_EACH; times++) {
            const plan = { run, seed, personality, limits, children: [], requests: 1, width: 1, malice: 0 };
            const request = firstCall(`${personality.name}/${model}`, path, { tools, picture, run });
            results.push(await storm(world, { ...plan, moodAt: () => "prose" }, request));
            run += 1;
          }
        }
      }
    }
  });
  return results;
}

/** Templates differ by endpoint. */
const OPENAI_PATHS = ["/v1/chat/completions", "/v1/responses"];

type Shape = { tools: boolean; picture: string | null };

/** With an image that says more than it is, where one can be; an upstream that counts images has no second model. */
function shapesOf({ sees, isLiedTo }: Personality): Shape[] {
  const pictures = sees === undefined ? [null] : [null, isLiedTo === true ? LIE : TINY];
  return pictures.flatMap((picture) => [false, true].map((tools) => ({ tools, picture })));
}

function firstCall(model: string, path: string, { tools, picture, run }: Shape & { run: number }): HostileRequest {
  const text = `${markerOf(run * RUN_NUMBERS, 0)} good men and great light`;
  const content = picture === null ? text : partsOf(path, text, picture);
  const parameters = { type: "object", properties: {} };
  const tool: Record<string, unknown> = {
    "/v1/messages": { name: "look", input_schema: parameters },
    "/v1/responses": { type: "function", name: "look", parameters },
    "/v1/chat/completions": { type: "function", function: { name: "look", parameters } },
  };
  const isResponses = path === "/v1/responses";
  const input = picture === null ? content : [{ role: "user", content }];
  const tree = objectOf({
    model,
    ...(isResponses ? { input, max_output_tokens: 20 } : { messages: [{ role: "user", content }], max_tokens: 20 }),
    ...(tools ? { tools: [tool[path]] } : {}),
  });
  return { path, text: write(tree), tree, calls: 1, leavesAfterMs: null };
}

function partsOf(path: string, text: string, picture: string): unknown[] {
  if (path === "/v1/messages")
    return [
      { type: "text", text },
      { type: "image", source: sourceOf(picture) },
    ];
  if (path === "/v1/responses") {
    return [
      { type: "input_text", text },
      { type: "input_image", image_url: picture },
    ];
  }
  return [
    { type: "text", text },
    { type: "image_url", image_url: { url: picture } },
  ];
}

async function pool<T>(width: number, items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let item = items[next++]; item !== undefined; item = items[next++]) await work(item);
  };
  await Promise.all(Array.from({ length: width }, worker));
}
