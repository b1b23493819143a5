/** One run under attack: opened with tight limits, hit with requests, polled meanwhile, and compared with its bill. */
import { request as httpRequest, Agent } from "node:http";
import { z } from "zod";
import type { Gateway } from "../../test/support/gateway.ts";
import { budgetDocument, DIMENSIONS, look, lookOf, type Limits, type Look } from "./budget.ts";
import { drawRequest, type HostileRequest, type Scene } from "./grammar.ts";
import { modelsOf, type Personality } from "./personalities.ts";
import { Random } from "./random.ts";
import type { Mood } from "./texts.ts";
import type { World } from "./world.ts";

export type StormPlan = {
  run: number;
  seed: number;
  personality: Personality;
  /** USD are dollars. */
  limits: Limits;
  /** Further limits for runs opened inside it, which send their share of the requests. */
  children: readonly Limits[];
  requests: number;
  width: number;
  malice: number;
  foreign?: number;
  /** The mood of a request by its place in the storm, 0 to 1. */
  moodAt: (place: number) => Mood;
};

/** The run and its children: each with the number by which the mock bills it. */
export type StormRun = { number: number; token: string; id: string; final: Look; over: readonly string[] };
export type StormResult = {
  plan: StormPlan;
  runs: readonly StormRun[];
  calls: number;
  statuses: Map<number, number>;
  overruns: number;
  sent: readonly HostileRequest[];
};

const runDocument = z.object({ budget: budgetDocument, stats: z.object({ pending_queries: z.number() }) });
const opened = z.object({ id: z.string(), token: z.string() });

const LOOK_EVERY_MS = 80;
const SETTLE_MS = 8_000;
/** Numbers of children's accounts follow their run's. */
export const RUN_NUMBERS = 8;

export async function storm(world: World, plan: StormPlan, body?: HostileRequest): Promise<StormResult> {
  const { gateway } = world;
  const random = new Random(plan.seed, plan.run);
  const root = await gateway.openRun({
    budget: plan.limits,
    max_parallel: 0,
    max_depth: 2,
    default_model: `${plan.personality.name}/${modelsOf(plan.personality)[0] ?? "m"}`,
  });
  const tokens = [{ number: plan.run * RUN_NUMBERS, ...root }];
  for (const limits of plan.children) {
    const child = await openChild(gateway, root.token, limits);
    if (child !== null) tokens.push({ number: plan.run * RUN_NUMBERS + tokens.length, ...child });
  }
  const watch = new Watch(
    gateway,
    tokens.map(({ token }) => token),
  );
  const statuses = new Map<number, number>();
  const sent: HostileRequest[] = [];
  let calls = 0;
  let drawn = 0;
  let marks = 0;
  const worker = async (): Promise<void> => {
    while (drawn < plan.requests) {
      const place = drawn / plan.requests;
      const owner = random.pick(tokens);
      const scene: Scene = {
        ...{ personality: plan.personality, run: owner.number, random, malice: plan.malice, mood: plan.moodAt(place) },
        foreign: plan.foreign ?? 0,
        next: () => (marks += 1),
      };
      const request = body ?? drawRequest(scene);
      drawn += request.calls;
      calls += request.calls;
      sent.push(request);
      const status = await post(gateway, owner.token, request);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: plan.width }, worker));
  for (const { id } of tokens.slice(1)) await gateway.fetch(`/runs/${id}/close`, { token: root.token, method: "POST" });
  const over = await watch.stop();
  const runs: StormRun[] = [];
  for (const [at, { number, token, id }] of tokens.entries()) {
    runs.push({ number, token, id, final: await settled(gateway, id), over: over[at] ?? [] });
  }
  const overruns = await overrunsOf(
    gateway,
    tokens.map(({ id }) => id),
  );
  return { plan, runs, calls, statuses, overruns, sent };
}

async function openChild(
  gateway: Gateway,
  token: string,
  limits: Limits,
): Promise<{ id: string; token: string } | null> {
  const answer = await gateway.fetch("/runs", { token, json: { budget: limits, max_parallel: 0 } });
  const text = await answer.text();
  // What its parent has no longer is refused.
  if (answer.status !== 201) return null;
  return opened.parse(JSON.parse(text));
}

/**
 * The budget once nothing is in flight any more, or as it is after `SETTLE_MS`. A group whose client has left goes on, and
 * reserves nothing between two attempts: so nothing may be pending either, at two looks.
 */
export async function settled(gateway: Gateway, id: string): Promise<Look> {
  const startedMs = performance.now();
  let quietLooks = 0;
  for (;;) {
    const { pending, look: seen } = await documentOf(gateway, id);
    const isQuiet = pending === 0 && DIMENSIONS.every((dimension) => seen[dimension].reserved === 0);
    quietLooks = isQuiet ? quietLooks + 1 : 0;
    if (quietLooks === 2 || performance.now() - startedMs > SETTLE_MS) return seen;
    await new Promise((resolve) => setTimeout(resolve, 40));
  }
}

/** As the operator, for a closed run's own token is refused. */
export async function documentOf(gateway: Gateway, id: string): Promise<{ look: Look; pending: number }> {
  const answer = await gateway.fetch(`/runs/${id}`, { token: gateway.adminKey });
  const { budget, stats } = runDocument.parse(await answer.json());
  return { look: lookOf(budget), pending: stats.pending_queries };
}

export async function overrunsOf(gateway: Gateway, ids: readonly string[]): Promise<number> {
  let overruns = 0;
  for (const id of ids) {
    const answer = await gateway.fetch(`/runs/${id}/log`, { token: gateway.adminKey });
    overruns += (await answer.text()).split('"event_type":"overrun"').length - 1;
  }
  return overruns;
}

/** Looks at budgets all the while and notes where more than the limit was spent and reserved. */
class Watch {
  readonly #over: string[][];
  readonly #done = new AbortController();
  readonly #ended: Promise<void>;

  constructor(gateway: Gateway, tokens: readonly string[]) {
    this.#over = tokens.map(() => []);
    this.#ended = this.#watch(gateway, tokens);
  }

  async stop(): Promise<readonly (readonly string[])[]> {
    this.#done.abort();
    await this.#ended;
    return this.#over;
  }

  async #watch(gateway: Gateway, tokens: readonly string[]): Promise<void> {
    while (!this.#done.signal.aborted) {
      for (const [at, token] of tokens.entries()) {
        const seen = await look(gateway, token).catch(() => null);
        if (seen === null) continue;
        for (const dimension of DIMENSIONS) {
          const { limit, spent, reserved } = seen[dimension];
          if (limit === null || spent + reserved <= limit) continue;
          this.#over[at]?.push(`${dimension}: ${spent} spent and ${reserved} reserved of ${limit}`);
        }
      }
      await sleepUntil(this.#done.signal, LOOK_EVERY_MS);
    }
  }
}

function sleepUntil(signal: AbortSignal, ms: number): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const timer = setTimeout(resolve, ms);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}

const agent = new Agent({ keepAlive: true, maxSockets: Infinity });

/** The status of the answer; 0 where there was none, because the client left or the server did. */
export function post(
  gateway: Gateway,
  token: string,
  { path, text, leavesAfterMs, headers: more }: HostileRequest,
): Promise<number> {
  return new Promise((resolve) => {
    const headers = {
      ...more,
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      "content-length": Buffer.byteLength(text),
    };
    const sent = httpRequest(gateway.url + path, { method: "POST", headers, agent }, (response) => {
      response.resume();
      response.once("end", () => resolve(response.statusCode ?? 0));
      response.once("error", () => resolve(0));
      response.once("close", () => resolve(response.statusCode ?? 0));
    });
    sent.once("error", () => resolve(0));
    if (leavesAfterMs !== null) {
      const timer = setTimeout(() => {
        resolve(0);
        sent.socket?.resetAndDestroy();
        sent.destroy();
      }, leavesAfterMs);
      sent.once("close", () => clearTimeout(timer));
    }
    sent.end(text);
  });
}
