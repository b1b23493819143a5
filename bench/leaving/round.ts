/** One mass leave: many calls of one run wait for few permits, and then their program is killed. */
import { spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { send, type OpenedRun } from "../../test/support/gateway.ts";
import { fileURLToPath } from "node:url";
import { NEXT_PROMPT, type LeavingUpstream } from "./upstream.ts";

/** A way in: the route, and the body of a call with that prompt. `settings`: of its run. */
export type Way = {
  name: string;
  path: string;
  bodyOf: (prompt: string) => unknown;
  headers?: Record<string, string>;
  settings?: Record<string, unknown>;
};

export type Leave = {
  way: string;
  /** From the leave until the next call's request has reached the upstream, ms; null = it never did. */
  nextMs: number | null;
  /** The same for a call of the same run while nothing else happens. */
  quietMs: number;
  /** From the leave until nothing is reserved any more, ms; null = something was for longer than was waited. */
  freeMs: number | null;
  /** Calls that were charged, without the next. */
  charged: number;
  /** Calls that have reached the upstream, without the next. */
  arrived: number;
};

const CALLS = 200;
const WIDTH = 24;
const ANSWERS = 30;
/** Longest that a round waits for its run to come to rest, ms. */
const REST_MS_MAX = 70_000;

const budget = z.looseObject({
  usd: z.looseObject({ spent: z.number(), reserved: z.number() }),
  calls: z.looseObject({ spent: z.number(), reserved: z.number() }),
});

type World = { url: string; openRun: (body: Record<string, unknown>) => Promise<OpenedRun>; upstream: LeavingUpstream };

/** @param url Where clients connect: a relay that reports their leaving to the gateway. */
export async function leave({ url, openRun, upstream }: World, way: Way, round: number): Promise<Leave> {
  const run = await openRun({ max_parallel: WIDTH, budget: { usd: 100, calls: 1_000_000 }, ...way.settings });
  const body = (prompt: string): string => JSON.stringify(way.bodyOf(prompt));
  const headers = { authorization: `Bearer ${run.token}`, "content-type": "application/json", ...way.headers };
  const bodies = Array.from({ length: CALLS }, (_, at) => body(`call ${at} of round ${round}`));
  const arrivals = upstream.begin();
  const leftAtMs = await killedProgram(url + way.path, { headers, bodies });
  const next = send(url + way.path, {
    method: "POST",
    headers,
    body: body(NEXT_PROMPT),
    signal: AbortSignal.timeout(REST_MS_MAX),
  });
  await next.then((answer) => answer.text()).catch(() => null);
  const freeMs = await restOf({ url, run }, leftAtMs);
  const { nextAtMs, calls: arrived } = arrivals;
  const { calls } = await budgetOf({ url, run });
  const nextMs = nextAtMs === null ? null : nextAtMs - leftAtMs;
  const charged = calls.spent - (nextAtMs === null ? 0 : 1);
  const quiet = upstream.begin();
  const quietAtMs = Date.now();
  await (await send(url + way.path, { method: "POST", headers, body: body(NEXT_PROMPT) })).text();
  const quietMs = (quiet.nextAtMs ?? Infinity) - quietAtMs;
  return { way: way.name, nextMs, quietMs, freeMs, charged, arrived };
}

const PROGRAM = fileURLToPath(new URL("program.ts", import.meta.url));

/** Runs the program until it has killed itself. Resolves with the time of that, epoch ms. */
async function killedProgram(url: string, call: { headers: object; bodies: string[] }): Promise<number> {
  const env = { ...process.env, FANOUT_CALL: JSON.stringify(call) };
  const program = spawn(process.execPath, [PROGRAM, url, `${ANSWERS}`], { env, stdio: ["ignore", "pipe", "inherit"] });
  let printed = "";
  for await (const piece of program.stdout.setEncoding("utf8")) printed += String(piece);
  if (printed === "") throw new Error("the program ended before it had its answers");
  return Number(printed);
}

async function restOf(of: { url: string; run: OpenedRun }, leftAtMs: number): Promise<number | null> {
  for (;;) {
    const { calls } = await budgetOf(of);
    const sinceMs = Date.now() - leftAtMs;
    if (calls.reserved === 0) return sinceMs;
    if (sinceMs > REST_MS_MAX) return null;
    await sleep(20);
  }
}

async function budgetOf({ url, run }: { url: string; run: OpenedRun }): Promise<z.infer<typeof budget>> {
  const answer = await send(`${url}/budget`, { token: run.token });
  return budget.parse(await answer.json());
}
