/**
 * The upstream of batches: a chat completions endpoint that identifies every line by its number, bills it by tokens.ts, and counts
 * calls. It is a separate process.
 *
 *   node bench/batch-api/provider.ts [--latency-ms=200] [--turn-away=0.3]
 *
 * Prints its port. `--turn-away` is the share of calls that are answered 429, drawn from the line and how often it came.
 * `GET /stats` answers what provider-process.ts reads.
 */
import { createServer } from "node:http";
import type { ServerResponse } from "node:http";
import { parseArgs } from "node:util";
import { draw } from "../budget/tariff.ts";
import { MODEL } from "../load/prompts.ts";
import { indexIn, textOf, tokensOf } from "./tokens.ts";
import { listenForParent } from "../servers/child-server.ts";

const { values } = parseArgs({
  options: { "latency-ms": { type: "string", default: "0" }, "turn-away": { type: "string", default: "0" } },
});
const latencyMs = Number(values["latency-ms"]);
const turnAway = Number(values["turn-away"]);

const stats = { requests: 0, inFlight: 0, peak: 0, turnedAway: 0, answered: 0, abandoned: 0 };
/** How often each line came. */
const sends = new Map<number, number>();

function answer(response: ServerResponse, index: number | null, send: number): void {
  stats.inFlight -= 1;
  if (response.destroyed) {
    stats.abandoned += 1;
    return;
  }
  if (turnAway > 0 && draw("turn-away", String(index), send) < turnAway) {
    stats.turnedAway += 1;
    const retryAfterS = draw("retry-after", String(index), send) < 0.5 ? 0 : 1;
    response.writeHead(429, { "content-type": "application/json", "retry-after": String(retryAfterS) });
    response.end('{"error":{"message":"too many requests","type":"rate_limit","param":null,"code":null}}');
    return;
  }
  stats.answered += 1;
  const { prompt, completion, cached, reasoning } = tokensOf(index ?? 0);
  const text = JSON.stringify({
    id: `chatcmpl-${index ?? "other"}`,
    object: "chat.completion",
    created: 1_763_712_000,
    model: MODEL,
    choices: [
      { index: 0, message: { role: "assistant", content: textOf(index ?? 0), refusal: null }, finish_reason: "stop" },
    ],
    usage: {
      prompt_tokens: prompt,
      completion_tokens: completion,
      total_tokens: prompt + completion,
      prompt_tokens_details: { cached_tokens: cached },
      completion_tokens_details: { reasoning_tokens: reasoning },
    },
  });
  response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
  response.end(text);
}

const server = createServer((request, response) => {
  if (request.method === "GET") {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ ...stats, lines: sends.size, repeated: repeated() }));
    return;
  }
  const pieces: Buffer[] = [];
  request.on("data", (piece: Buffer) => pieces.push(piece));
  // What is cut off by a kill never ends, and is no call.
  request.on("end", () => {
    stats.requests += 1;
    stats.inFlight += 1;
    stats.peak = Math.max(stats.peak, stats.inFlight);
    const index = indexIn(Buffer.concat(pieces).toString("latin1"));
    const send = (sends.get(index ?? -1) ?? 0) + 1;
    if (index !== null) sends.set(index, send);
    if (latencyMs > 0) setTimeout(answer, latencyMs, response, index, send);
    else answer(response, index, send);
  });
});

function repeated(): number {
  let count = 0;
  for (const times of sends.values()) count += times - 1;
  return count;
}

listenForParent(server);
