/** An upstream that answers each call by the workload: after its latency, with its tokens, cut only by the cap. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { answerText, streamText, type Answered } from "../adversary/answers.ts";
import { isTrue, member, numberOf, parseLenient } from "../adversary/lenient-json.ts";
import { PRICE, type TrueCall } from "./workload.ts";

/** Its bill: in total, and for answers to calls that were requested again. */
export type Served = {
  nanoUsd: number;
  requests: number;
  /** Nano-USD of all answers to a call but its last. */
  wastedNanoUsd: number;
  /** Σ of the time that calls took, ms, and when the first came and the last was answered. */
  busyMs: number;
  firstMs: number;
  lastMs: number;
  peak: number;
};

export type Upstream = { origin: string; served: () => Served; forget: () => void; stop(): Promise<void> };

export async function startUpstream(calls: readonly TrueCall[]): Promise<Upstream> {
  const fresh = (): Served => ({
    ...{ nanoUsd: 0, requests: 0, wastedNanoUsd: 0 },
    ...{ busyMs: 0, firstMs: 0, lastMs: 0, peak: 0 },
  });
  let served = fresh();
  const last = new Map<number, number>();
  let inFlight = 0;
  const server = createServer((request, response) => {
    textOf(request)
      .then((text) => serve(text, response))
      .catch(() => response.destroy());
  });

  async function serve(text: string, response: ServerResponse): Promise<void> {
    const index = Number(/#(\d+)#/.exec(text)?.[1] ?? -1);
    const call = calls[index];
    if (call === undefined) return void response.writeHead(404).end("{}");
    const startedMs = performance.now();
    served.firstMs = served.firstMs === 0 ? startedMs : served.firstMs;
    served.requests += 1;
    inFlight += 1;
    served.peak = Math.max(served.peak, inFlight);
    const body = parseLenient(text);
    const cap = numberOf(member(body, "max_tokens", "last"));
    const completionTokens = Math.min(call.completionTokens, cap ?? Infinity);
    const nanoUsd = call.promptTokens * PRICE.input + completionTokens * PRICE.output;
    served.nanoUsd += nanoUsd;
    served.wastedNanoUsd += last.get(index) ?? 0;
    last.set(index, nanoUsd);
    await new Promise((resolve) => setTimeout(resolve, call.latencyMs));
    inFlight -= 1;
    served.lastMs = performance.now();
    served.busyMs += served.lastMs - startedMs;
    const streams = isTrue(member(body, "stream", "last"));
    // A call that ends exactly at the cap has ended by itself.
    const isCut = cap !== null && cap < call.completionTokens;
    answer(response, streams, {
      ...{ family: "chat", model: "m", cost: null, hidesUsage: false, echo: 0 },
      bill: {
        ...{ promptTokens: call.promptTokens, cachedTokens: 0, write5mTokens: 0, write1hTokens: 0, completionTokens },
        ...{ nanoUsd, tier: null, streams, tellsUsage: true, cap: isCut ? cap : null, notes: [] },
      },
    });
  }

  await new Promise<void>((resolve) => server.listen({ host: "127.0.0.1", port: 0, backlog: 4_096 }, resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the upstream has no TCP address");
  return {
    origin: `http://127.0.0.1:${address.port}`,
    served: () => ({ ...served }),
    forget: () => {
      served = fresh();
      last.clear();
    },
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function answer(response: ServerResponse, streams: boolean, answered: Answered): void {
  if (streams) {
    response.writeHead(200, { "content-type": "text/event-stream" });
    return void response.end(streamText(answered).join(""));
  }
  response.writeHead(200, { "content-type": "application/json" });
  response.end(answerText(answered));
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) if (chunk instanceof Buffer) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}
