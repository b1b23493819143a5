/**
 * `npm run bench:tool-kill` = `node bench/tool-kill.ts [--slots=200] [--kills=20] [--width=8] [--seed=1]`: conversations with tools, of five
 * turns with two calls of a tool in each but the last, whose budget ends in the middle, and whose gateway is killed again and again.
 * Exit status 1 if more is spent than the limit, if a turn that had ended is paid again, or if a tool that is not idempotent is called
 * twice for one call of the model.
 */
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { parseArgs } from "node:util";
import { z } from "zod";
import { startByteUpstream } from "../test/support/byte-upstream.ts";
import { startGateway, type Gateway, type OpenedRun } from "../test/support/gateway.ts";
import { answerAsModel } from "../test/support/tool-model.ts";
import { startToolServer } from "../test/support/tool-server.ts";
import { draw } from "./budget/tariff.ts";
import { billedUsd, lettersOf, promptOf, repeatedTools, TURNS, turnsSent } from "./tool-kill/witness.ts";

const option = (value: string) => ({ type: "string", default: value }) as const;
const { values } = parseArgs({
  options: {
    slots: option("200"),
    kills: option("20"),
    width: option("8"),
    seed: option("1"),
    "delay-ms": option("200"),
  },
});
const sizes = z.object({
  slots: z.coerce.number().int(),
  kills: z.coerce.number().int(),
  width: z.coerce.number().int(),
  "delay-ms": z.coerce.number().int(),
});
const { slots, kills, width, "delay-ms": delayMs } = sizes.parse(values);
const PARAMETERS = { type: "object", properties: { word: { type: "string" } }, required: ["word"] };
/** The most that an upstream may have: a turn may be lost by several kills. */
const ATTEMPTS_MAX = 10;
/** Longest that a killed gateway runs before the next kill, ms, from its first request to the model. */
const LIFE_MS_MAX = 1_000;
/** Longest until the calls of a lost executor go on: a lease and some. */
const RECOVERY_MS_MAX = 180_000;

const [upstream, tools, dataDir] = await Promise.all([
  startByteUpstream(),
  startToolServer(),
  mkdtemp(join(tmpdir(), "fanout-tools-")),
]);
upstream.serve(async (call, reply) => {
  await wait(delayMs);
  answerAsModel(call, reply);
});
const vars = {
  ADMIN_KEY: randomUUID(),
  KEY: "sk-bench-5f0c9d1e7ab24c60",
  TOOL_HOSTS: tools.host,
  UPSTREAMS: {
    up: {
      kind: "openai",
      base_url: `${upstream.origin}/v1`,
      api_key: "secret:KEY",
      max_attempts: ATTEMPTS_MAX,
      prices: { "*": { input: 1, output: 1 } },
    },
  },
};
let gateway: Gateway = await startGateway({ dataDir, vars });

const opened = z.looseObject({ id: z.string() });
const group = z.looseObject({
  status: z.string(),
  results: z.array(z.string()).optional(),
  items: z.array(z.looseObject({ status: z.string(), finish_reason: z.string().nullable().optional() })).optional(),
});
const dimension = z.looseObject({ spent: z.number(), reserved: z.number() });
const budget = z.looseObject({ usd: dimension, calls: dimension });

const openRun = (usd: number): Promise<OpenedRun> =>
  gateway.openRun({
    budget: { usd },
    max_parallel: width,
    tools: [{ name: "length", url: `http://${tools.host}/length`, parameters: PARAMETERS }],
  });

/** Opens the batch, which goes on whatever becomes of this program's connection. */
async function openBatch({ token }: OpenedRun): Promise<string> {
  const prompts = Array.from({ length: slots }, (_, slot) => promptOf(slot));
  const json = { prompts, model: "up/m", tools: ["length"], max_tokens: 100 };
  const answer = await gateway.fetch("/batch", { token, json, headers: { prefer: "respond-async" } });
  return `/groups/${opened.parse(await answer.json()).id}`;
}

async function endOf({ token }: OpenedRun, path: string) {
  const deadline = performance.now() + 2 * RECOVERY_MS_MAX;
  for (;;) {
    const found = group.parse(await (await gateway.fetch(`${path}?wait_ms=20000`, { token })).json());
    if (found.status !== "running") return found;
    if (performance.now() > deadline) throw new Error("the batch does not end");
  }
}

const budgetOf = async ({ token }: OpenedRun) => budget.parse(await (await gateway.fetch("/budget", { token })).json());

const faults: string[] = [];
const check = (holds: boolean, fault: string): void => void (holds || faults.push(fault));

/** A budget that pays for about half of all turns. */
async function budgetEnds(wholeUsd: number): Promise<void> {
  upstream.forget();
  tools.forget();
  const limit = wholeUsd / 2;
  const run = await openRun(limit);
  const { items = [] } = await endOf(run, await openBatch(run));
  const { usd } = await budgetOf(run);
  const billed = billedUsd(upstream);
  const ends = new Map<string, number>();
  for (const { status, finish_reason: reason } of items) {
    const name = status === "completed" ? String(reason) : status;
    ends.set(name, (ends.get(name) ?? 0) + 1);
  }
  console.log(
    `budget of $${limit.toFixed(6)}: spent $${usd.spent.toFixed(6)}, billed $${billed.toFixed(6)}, reserved $${usd.reserved}; ` +
      `ends: ${[...ends].map(([name, count]) => `${name} ${count}`).join(", ")}`,
  );
  check(usd.spent <= limit, `spent ${usd.spent} of ${limit}`);
  check(Math.abs(usd.spent - billed) < 1e-9, `spent ${usd.spent}, billed ${billed}`);
  check(usd.reserved === 0, `${usd.reserved} is still reserved`);
  check(ends.size > 1, "the budget did not end in the middle");
  check(repeatedTools(tools) === 0, "a call of a tool was made twice");
}

/** Kills it at a random moment of its life, and starts it again. */
async function kill(number: number): Promise<void> {
  const before = upstream.calls.length;
  const deadline = performance.now() + RECOVERY_MS_MAX;
  while (upstream.calls.length === before && performance.now() < deadline) await wait(5);
  await wait(draw(`${values.seed} kill ${number}`) * LIFE_MS_MAX);
  await gateway.kill();
  gateway = await startGateway({ dataDir, vars });
}

async function isKilled(): Promise<void> {
  upstream.forget();
  tools.forget();
  const run = await openRun(100);
  const path = await openBatch(run);
  let made = 0;
  for (; made < kills && turnsSent(upstream).turns < slots * TURNS; made++) await kill(made);
  const { results = [] } = await endOf(run, path);
  const { usd, calls } = await budgetOf(run);
  const { sent, turns, repeated, afterTheirEnd } = turnsSent(upstream);
  const right = results.filter((result, slot) => result === `${lettersOf(slot)} letters`).length;
  const unknown = results.filter((result) => result.includes("is not known")).length;
  const billed = billedUsd(upstream);
  console.log(
    `${made} kills of ${slots} slots at width ${width}: ${turns} turns, ${sent} requests, ${repeated} repeated after a loss, ` +
      `${afterTheirEnd} after their end; ${tools.requests.length} calls of tools, ${repeatedTools(tools)} twice; ` +
      `${right} answers right, ${unknown} with a result that is not known; spent $${usd.spent.toFixed(6)}, billed $${billed.toFixed(6)}`,
  );
  check(made === kills, `${made} of ${kills} kills: the batch had ended`);
  check(turns === slots * TURNS, `${turns} of ${slots * TURNS} turns`);
  check(afterTheirEnd === 0, `${afterTheirEnd} turns were paid again after their end`);
  check(repeated <= made * width, `${repeated} requests were repeated by ${made} kills at width ${width}`);
  check(repeatedTools(tools) === 0, "a call of a tool was made twice");
  check(right + unknown === slots, `${slots - right - unknown} answers are wrong`);
  check(
    calls.spent >= sent && usd.spent >= billed - 1e-9,
    `spent ${usd.spent} for ${calls.spent} calls, billed ${billed} for ${sent}`,
  );
  check(usd.reserved === 0, `${usd.reserved} is still reserved`);
}

try {
  const whole = await openRun(100);
  await endOf(whole, await openBatch(whole));
  await budgetEnds((await budgetOf(whole)).usd.spent);
  await isKilled();
} finally {
  await gateway.stop();
  await Promise.all([upstream.stop(), tools.stop(), rm(dataDir, { recursive: true, force: true })]);
}
for (const fault of faults) console.log(`MISSED: ${fault}`);
process.exit(faults.length > 0 ? 1 : 0);
