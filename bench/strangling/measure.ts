/** One batch, or as many single calls, on a budget that their true cost decides. */
import { z } from "zod";
import { startGateway, type Gateway } from "../../test/support/gateway.ts";
import { startUpstream, type Served } from "./upstream.ts";
import { drawCalls, idealWallMs, PRICE, type Shape, type TrueCall } from "./workload.ts";

export type Case = {
  name: string;
  shape: Shape;
  calls: number;
  width: number;
  way: "batch" | "query";
  /** The cap that each call names; null = none. */
  maxTokens: number | null;
  /** The limit, from what the calls truly cost, nano-USD. */
  limitOf: (trueNanoUsd: number, worstNanoUsd: number) => number;
};

export type Measured = {
  name: string;
  calls: number;
  uncut: number;
  cut: number;
  refused: number;
  failed: number;
  /** Share of the width that true costs allow: the time of the same calls without a limit, over the measured one. */
  widthShare: number;
  meanWidth: number;
  wallMs: number;
  /** The same calls on the same gateway in a run without limits. */
  freeMs: number;
  /** The time of somebody who knows what each call will cost, and costs no time himself. */
  idealMs: number;
  /** Share of the bill for answers that were requested again. */
  wasteShare: number;
  /** Share of the limit that was billed in the end. */
  usedShare: number;
};

/** Bytes that a reservation adds to a prompt: 8 for its message, 128 for the template. */
const ALLOWANCE = 136;

/** How a call ended: its finish reason, or the code of its error. */
type End = string;

export async function measure(one: Case, seed: number): Promise<Measured> {
  const calls = drawCalls(seed, one.calls, one.shape);
  const trueNanoUsd = calls.reduce((sum, { costNanoUsd }) => sum + costNanoUsd, 0);
  const worst = Math.max(...calls.map(({ prompt }) => Buffer.byteLength(prompt) + ALLOWANCE));
  const limit = one.limitOf(trueNanoUsd, worst * PRICE.input + (one.maxTokens ?? 4_096) * PRICE.output);
  const upstream = await startUpstream(calls);
  const gateway = await startGateway({ vars: varsOf(upstream.origin) });
  const run = async (budget: Record<string, number>): Promise<End[]> => {
    upstream.forget();
    const { token } = await gateway.openRun({ budget, max_parallel: one.width });
    return await (one.way === "batch" ? batch(gateway, token, calls, one) : queries(gateway, token, calls, one));
  };
  try {
    await run({});
    const free = upstream.served();
    const ends = await run({ usd: limit / 1e9 });
    const idealMs = idealWallMs(calls, one.width, limit);
    return measured(one, ends, upstream.served(), { freeMs: wallOf(free), idealMs }, limit);
  } finally {
    await gateway.kill();
    await upstream.stop();
  }
}

const wallOf = ({ firstMs, lastMs }: Served): number => lastMs - firstMs;

function varsOf(origin: string): Record<string, unknown> {
  const prices = { "*": { input: PRICE.input / 1_000, output: PRICE.output / 1_000 } };
  const up = { kind: "openai", base_url: `${origin}/v1`, prices };
  return { UPSTREAMS: { up }, DEFAULT_MODEL: "up/m" };
}

type Yardstick = Pick<Measured, "freeMs" | "idealMs">;

function measured(one: Case, ends: readonly End[], served: Served, yardstick: Yardstick, limit: number): Measured {
  const count = (matches: (end: End) => boolean): number => ends.filter(matches).length;
  const wallMs = wallOf(served);
  const [uncut, cut] = [count((end) => end === "stop"), count((end) => end === "length")];
  const refused = count((end) => end.includes("budget"));
  return {
    ...{ name: one.name, calls: one.calls, uncut, cut, refused, failed: ends.length - uncut - cut - refused },
    // No slower than without a limit where true costs allow the whole width, and than who knows them where they do not.
    ...{ widthShare: Math.max(yardstick.freeMs, yardstick.idealMs) / wallMs, meanWidth: served.busyMs / wallMs },
    ...{ wallMs, ...yardstick },
    ...{ wasteShare: served.wastedNanoUsd / served.nanoUsd, usedShare: served.nanoUsd / limit },
  };
}

const group = z.object({
  errors: z.array(z.object({ code: z.string() }).nullable()),
  items: z.array(z.object({ finish_reason: z.string().nullable() })),
});

async function batch(gateway: Gateway, token: string, calls: readonly TrueCall[], { maxTokens }: Case): Promise<End[]> {
  const json = { prompts: calls.map(({ prompt }) => prompt), ...(maxTokens === null ? {} : { max_tokens: maxTokens }) };
  const answer = await gateway.fetch("/batch", { token, json });
  const { errors, items } = group.parse(await answer.json());
  return items.map(({ finish_reason: reason }, at) => errors[at]?.code ?? reason ?? "none");
}

const single = z.union([z.object({ finish_reason: z.string() }), z.object({ error: z.object({ code: z.string() }) })]);

async function queries(gateway: Gateway, token: string, calls: readonly TrueCall[], one: Case): Promise<End[]> {
  const ends: End[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let call = calls[next++]; call !== undefined; call = calls[next++]) {
      const cap = one.maxTokens === null ? {} : { max_tokens: one.maxTokens };
      const answer = await gateway.fetch("/query", { token, json: { prompt: call.prompt, ...cap } });
      const read = single.parse(await answer.json());
      ends.push("error" in read ? read.error.code : read.finish_reason);
    }
  };
  await Promise.all(Array.from({ length: one.width }, worker));
  return ends;
}
