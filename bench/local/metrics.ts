/**
 * `GET /metrics` under `npm start`: bursts with pauses in which every object falls asleep, workerd is killed in the middle of some, and
 * a reader comes as Prometheus does. In the end it shows what the runs have used, to the last unit.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { exact, plain, type Part } from "../parts/row.ts";
import { ADMIN_KEY, openRun, startUpstream } from "../servers/servers.ts";
import { killWorkerd, untilHealthy } from "./crash.ts";
import { startNpm, type Started } from "./started.ts";

const SLOTS = 200;
const LATENCY_MS = 200;
/** Objects sleep after ten seconds without a request; Prometheus reads every fifteen to sixty. */
const PAUSES_MS = [2_000, 14_000, 28_000];
/** Longest until what a kill has cut off has ended, ms: the term of a found lease and some. */
const SETTLE_MS_MAX = 90_000;

type Figures = { attempts: number; promptTokens: number; completionTokens: number; nanoUsd: number };

const spent = z.object({ spent: z.number(), reserved: z.number() });
const document = z.looseObject({
  metrics: z.looseObject({ attempts: z.number() }),
  budget: z.object({ usd: spent, prompt_tokens: spent, completion_tokens: spent, calls: spent }),
});

/** So many bursts; a kill ends each third of them in its middle. */
export async function measureMetrics(bursts: number): Promise<Part> {
  await using upstream = await startUpstream({ latencyMs: LATENCY_MS });
  await using gateway = await startNpm(upstream);
  const tokens: string[] = [];
  const faults: string[] = [];
  let kills = 0;
  for (let burst = 0; burst < bursts; burst += 1) {
    const token = tokens[burst % 4] ?? (await openRun(gateway));
    if (burst < 4) tokens.push(token);
    // A kill ends the requests that are under way.
    const answered = send(gateway, token, burst).catch(() => undefined);
    if (burst % 3 === 2) {
      await sleep(LATENCY_MS * 1.5);
      killWorkerd(gateway);
      kills += 1;
      await untilHealthy(gateway.url, performance.now());
    }
    await answered;
    await sleep(PAUSES_MS[burst % PAUSES_MS.length] ?? 0);
    if (burst % 2 === 1) await shownBy(gateway);
  }
  const used = await settledFigures(gateway, tokens);
  const shown = await shownBy(gateway);
  const isEqual = JSON.stringify(used) === JSON.stringify(shown);
  if (!isEqual) faults.push(`the runs have used ${JSON.stringify(used)}, /metrics shows ${JSON.stringify(shown)}`);
  return {
    rows: [
      exact(
        `metrics: what is missing of ${used.attempts} attempts, their tokens and dollars, after ${bursts} bursts and ${kills} kills`,
        isEqual ? "nothing" : JSON.stringify(shown),
        "= nothing",
        isEqual,
      ),
      plain("metrics: dollars shown", String(shown.nanoUsd / 1e9)),
    ],
    faults,
  };
}

async function send(gateway: Started, token: string, burst: number): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const post = (path: string, body: object): Promise<string> =>
    fetch(gateway.url + path, { method: "POST", headers, body: JSON.stringify(body) }).then((reply) => reply.text());
  const prompts = Array.from({ length: SLOTS }, (_, index) => `burst ${burst} slot ${index}`);
  const singles = Array.from({ length: 20 }, (_, index) =>
    post("/query", { prompt: `burst ${burst} single ${index}` }),
  );
  await Promise.all([post("/batch", { prompts }), ...singles]);
}

async function shownBy(gateway: Started): Promise<Figures> {
  const reply = await fetch(`${gateway.url}/metrics`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } });
  const lines = (await reply.text()).split("\n");
  const sum = (start: string): number =>
    lines.filter((line) => line.startsWith(start)).reduce((total, line) => total + Number(line.split(" ").at(-1)), 0);
  const tokens = (direction: string): number =>
    lines
      .filter((line) => line.startsWith("fanout_tokens_total") && line.includes(`direction="${direction}"`))
      .reduce((total, line) => total + Number(line.split(" ").at(-1)), 0);
  return {
    attempts: sum("fanout_calls_total"),
    promptTokens: tokens("prompt"),
    completionTokens: tokens("completion"),
    nanoUsd: Math.round(sum("fanout_cost_usd_total") * 1e9),
  };
}

/** What all runs have used, once nothing of them is reserved. */
async function settledFigures(gateway: Started, tokens: readonly string[]): Promise<Figures> {
  const untilMs = performance.now() + SETTLE_MS_MAX;
  for (;;) {
    const runs = await Promise.all(
      tokens.map(async (token) => {
        const reply = await fetch(`${gateway.url}/run`, { headers: { authorization: `Bearer ${token}` } });
        return document.parse(await reply.json());
      }),
    );
    const isSettled = runs.every(({ budget }) => budget.calls.reserved === 0);
    if (!isSettled && performance.now() < untilMs) {
      await sleep(1_000);
      continue;
    }
    const total: Figures = { attempts: 0, promptTokens: 0, completionTokens: 0, nanoUsd: 0 };
    for (const { metrics, budget } of runs) {
      total.attempts += metrics.attempts;
      total.promptTokens += budget.prompt_tokens.spent;
      total.completionTokens += budget.completion_tokens.spent;
      total.nanoUsd += Math.round(budget.usd.spent * 1e9);
    }
    return total;
  }
}
