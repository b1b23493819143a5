/** One ordered fan-out of `n` prompts, sent to each variant. Returns the wall time that the client measures. */
import { z } from "zod";
import { load } from "./load.ts";
import type { Server } from "../servers/process.ts";
import { completionBody, promptOf } from "./prompts.ts";

/** A fan-out: `n` prompts of at least `promptBytes`, at most `width` in flight. */
export type FanOut = { n: number; width: number; promptBytes?: number };

/** Longest a fan-out may take, ms: what takes longer is stuck, not slow. */
const FAN_OUT_MS_MAX = 240_000;

const batchAnswer = z.object({ status: z.string(), results: z.array(z.string()), errors: z.array(z.unknown()) });
const bareAnswer = z.object({ results: z.array(z.string()) });

/** The gateway's `POST /batch` under the run of `token`; throws unless every slot was answered. Returns ms. */
export async function sendBatch(gateway: Server, token: string, fanOut: FanOut): Promise<number> {
  const prompts = Array.from({ length: fanOut.n }, (_, index) => promptOf(index, fanOut.promptBytes));
  const body = JSON.stringify({ prompts, concurrency: fanOut.width });
  const startedMs = performance.now();
  const response = await fetch(`${gateway.url}/batch`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body,
    signal: AbortSignal.timeout(FAN_OUT_MS_MAX),
  });
  const text = await response.text();
  const wallMs = performance.now() - startedMs;
  if (response.status !== 200) throw new Error(`POST /batch answered ${response.status}: ${text.slice(0, 1_000)}`);
  const answer = batchAnswer.parse(JSON.parse(text));
  if (answer.status !== "completed" || answer.results.length !== fanOut.n) {
    const failed = answer.errors.find((error) => error !== null);
    throw new Error(
      `the batch ended as ${answer.status} with ${answer.results.length} results: ${JSON.stringify(failed)}`,
    );
  }
  return wallMs;
}

/** The same of the bare Worker. Returns ms. */
export async function sendBare(bare: Server, fanOut: FanOut): Promise<number> {
  const body = JSON.stringify({ n: fanOut.n, width: fanOut.width, prompt_bytes: fanOut.promptBytes ?? 0 });
  const startedMs = performance.now();
  const response = await fetch(bare.url, { method: "POST", body, signal: AbortSignal.timeout(FAN_OUT_MS_MAX) });
  const text = await response.text();
  const wallMs = performance.now() - startedMs;
  const { results } = bareAnswer.parse(JSON.parse(text));
  if (results.length !== fanOut.n) throw new Error(`the bare Worker answered ${results.length} results`);
  return wallMs;
}

/** The same sent straight to the upstream by the load generator. Returns ms. */
export async function sendDirect(upstream: Server, fanOut: FanOut): Promise<number> {
  const result = await load({
    url: `${upstream.url}/v1/chat/completions`,
    headers: { authorization: "Bearer bench" },
    body: (index) => completionBody(promptOf(index, fanOut.promptBytes)),
    concurrency: fanOut.width,
    requests: fanOut.n,
    msMax: FAN_OUT_MS_MAX,
  });
  return (result.requests / result.rps) * 1_000;
}
