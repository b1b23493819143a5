/**
 * A provider for tests that drive the gateway with real clients. Ordinary answers are aimock's, so that streams, events
 * and envelopes are not of our own making; what it cannot do is in provider-raw.ts. In front of both stands a recorder:
 * it keeps every request as it arrived, every answer as it left, and when callers went away.
 */
import { LLMock, type ChatCompletionRequest, type Fixture } from "@copilotkit/aimock";
import { createServer, request as httpRequest } from "node:http";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { z } from "zod";
import { EMBEDDING, tokensIn, type Exchange, type Tokens } from "./provider-exchange.ts";
import { answerRaw, refusesKey } from "./provider-raw.ts";

/** What all answers so far cost, by the provider's own count. */
export type Bill = Tokens & { calls: number; nanoUsd: number };

/** A message of a request: its text, and the addresses of its images. */
type Heard = { role: string; text: string; images: string[] };

/** A call of a tool, with its arguments as JSON. */
export type Calling = { name: string; arguments: string };

/** What a model says to the messages of a request, oldest first, or which tools it calls. */
export type Mind = (messages: readonly Heard[]) => string | Calling;

export type Provider = {
  /** Has OpenAI's and Anthropic's API below `/v1`. */
  origin: string;
  /** A `base_url` whose answers name their cost, as routers' do. */
  routerUrl: string;
  exchanges: Exchange[];
  /** The exchanges whose path ends so. */
  asked(path: string): Exchange[];
  bill(): Bill;
  /** `bill().nanoUsd`. */
  billedNanoUsd(): number;
  /** What models whose names end with `mind` say from now on. */
  think(mind: Mind): void;
  forget(): void;
  stop(): Promise<void>;
};

/** nano-USD per token: $1 and $2 per million. */
export const PRICE_NANO = { prompt: 1_000, completion: 2_000 };
/** What a router charges instead: dearer than its tokens, so that a charge shows whose figure was taken. */
const ROUTER_NANO = { prompt: 1_500, completion: 2_500 };

const NOTHING: Bill = { calls: 0, prompt: 0, completion: 0, nanoUsd: 0 };

/** The model whose answers the router names a cost for. */
const ROUTED = "routed";

/** Starts a provider that knows one key. */
export async function startProvider(apiKey: string): Promise<Provider> {
  let billed: Bill = NOTHING;
  let mind: Mind = () => "";
  const bill = ({ prompt, completion }: Tokens, price = PRICE_NANO): number => {
    const costNanoUsd = prompt * price.prompt + completion * price.completion;
    billed = {
      calls: billed.calls + 1,
      prompt: billed.prompt + prompt,
      completion: billed.completion + completion,
      nanoUsd: billed.nanoUsd + costNanoUsd,
    };
    return costNanoUsd;
  };
  const mock = new LLMock({ port: 0, logLevel: "silent" });
  mock.addFixtures(fixtures(bill, (messages) => mind(messages)));
  const mockUrl = await mock.start();
  const exchanges: Exchange[] = [];
  const server = createServer((request, response) => {
    const answering = record(request, response, exchanges).then((exchange) => {
      if (refusesKey(exchange, response, apiKey) || answerRaw(exchange, response, bill)) return;
      forward(mockUrl, exchange, response);
    });
    // A fault of the provider's own fails the test that meets it, and does not hang it.
    answering.catch((error: unknown) => response.writeHead(418).end(String(error)));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the provider has no TCP address");
  const origin = `http://127.0.0.1:${address.port}`;
  return {
    origin,
    routerUrl: `${origin}/api/v1`,
    exchanges,
    asked: (path) => exchanges.filter((exchange) => exchange.path.endsWith(path)),
    bill: () => billed,
    billedNanoUsd: () => billed.nanoUsd,
    think: (thinks) => void (mind = thinks),
    forget: () => {
      exchanges.length = 0;
      billed = NOTHING;
    },
    stop: async () => {
      server.closeAllConnections();
      await Promise.all([mock.stop(), new Promise((resolve) => server.close(resolve))]);
    },
  };
}

/** Time in which what was sent before a reset arrives, ms. */
const RESET_AFTER_MS = 20;

async function record(request: IncomingMessage, response: ServerResponse, exchanges: Exchange[]): Promise<Exchange> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  const body = Buffer.concat(chunks);
  const { method = "", url: path = "", headers } = request;
  const nothing = { status: null, answer: Buffer.alloc(0), leftAtMs: null };
  const exchange: Exchange = { method, path, headers, body, json: jsonOf(body.toString("utf8")), ...nothing };
  exchanges.push(exchange);
  response.once("close", () => {
    if (!response.writableFinished) exchange.leftAtMs = performance.now();
  });
  return exchange;
}

/** Has aimock answer, and passes on what it sends in the pieces in which it sends it, its broken connections too. */
function forward(mockUrl: string, exchange: Exchange, response: ServerResponse): void {
  const { method, path, headers, body } = exchange;
  const forwarded = httpRequest(
    `${mockUrl}${path}`,
    { method, headers: { ...headers, host: new URL(mockUrl).host } },
    (answer) => {
      exchange.status = answer.statusCode ?? 0;
      response.writeHead(exchange.status, withoutLimits(answer.headers));
      answer.on("data", (chunk: Buffer) => {
        exchange.answer = Buffer.concat([exchange.answer, chunk]);
        response.write(chunk);
      });
      answer.once("end", () => response.end());
      // A reset that came at once would take what was sent before with it.
      answer.once("error", () => setTimeout(() => response.socket?.resetAndDestroy(), RESET_AFTER_MS));
    },
  );
  forwarded.once("error", () => response.socket?.resetAndDestroy());
  response.once("close", () => forwarded.destroy());
  forwarded.end(body);
}

/** How aimock answers, by the model's name. What a model does once it does once for each prompt. */
function fixtures(bill: (tokens: Tokens, price?: typeof PRICE_NANO) => number, mind: Mind): Fixture[] {
  const sends = new Map<string, number>();
  const respond = (request: ChatCompletionRequest) => {
    const { model } = request;
    const key = `${model} ${JSON.stringify(request.messages)}`;
    const send = (sends.get(key) ?? 0) + 1;
    sends.set(key, send);
    const refusal = refusalOf(model, send);
    if (refusal !== null) return refusal;
    const said = model.endsWith("mind") ? mind(request.messages.map(saidOf)) : contentOf(request);
    const written = typeof said === "string" ? said : said.arguments;
    const tokens = { prompt: tokensIn(JSON.stringify(request.messages)), completion: tokensIn(written) };
    const cost = bill(tokens, model.startsWith(ROUTED) ? ROUTER_NANO : PRICE_NANO) / 1e9;
    const { prompt, completion } = tokens;
    const usage = {
      ...{ prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion },
      ...{ input_tokens: prompt, output_tokens: completion },
      ...(model.startsWith(ROUTED) ? { cost, ...DETAILS } : {}),
    };
    if (typeof said !== "string") return { toolCalls: [said], usage };
    const { tools } = request;
    const name = tools?.[0]?.function.name;
    const answered = request.messages.some(({ role }) => role === "tool");
    if (name !== undefined && !answered) return { toolCalls: [{ name, arguments: '{"city":"Zürich"}' }], usage };
    return { content: said, ...(model.startsWith(ROUTED) ? { reasoning: "I repeat it." } : {}), usage };
  };
  const chat = (model: RegExp, how: Partial<Fixture> = {}): Fixture => ({
    match: { endpoint: "chat", model },
    response: respond,
    chunkSize: 4,
    ...how,
  });
  return [
    // At full speed aimock would cut the connection before it has sent anything.
    chat(/^cut-short/, { streamingProfile: { ttft: 5, tps: 100 }, truncateAfterChunks: 4 }),
    chat(/^cut-late/, { streamingProfile: { ttft: 5, tps: 20 }, disconnectAfterMs: 150 }),
    chat(/^slow/, { streamingProfile: { ttft: 5, tps: 20 } }),
    chat(/./),
    { match: { endpoint: "embedding" }, response: { embedding: [...EMBEDDING] } },
  ];
}

/** A router's details of its token counts. */
const DETAILS = {
  prompt_tokens_details: { cached_tokens: 1 },
  completion_tokens_details: { reasoning_tokens: 1 },
  cost_details: { upstream_inference_cost: 0 },
};

function refusalOf(model: string, send: number) {
  const isOnce = model.endsWith("-once");
  if (isOnce && send > 1) return null;
  const kind = model.replace(/-once$/, "");
  const limited = { message: "slow down", type: "rate_limit_error", param: null, code: "rate_limit_exceeded" };
  if (kind === "limited") return { error: limited, status: 429, retryAfter: isOnce ? 0 : 120 };
  if (kind === "busy") return { error: { message: "busy", type: "server_error", code: "busy" }, status: 503 };
  if (kind !== "picky") return null;
  const error = {
    message: "temperature: too hot",
    type: "invalid_request_error",
    param: "temperature",
    code: "too_hot",
  };
  return { error, status: 400 };
}

/** An echo of the last message within the cap; or, if a schema is requested, an object that fits it. */
function contentOf(request: ChatCompletionRequest): string {
  if (request.response_format?.type === "json_schema") return '{"answer":42}';
  const last = request.messages.at(-1);
  const text = last === undefined ? "" : saidOf(last).text;
  const cap = request.max_tokens ?? request["max_completion_tokens"];
  return typeof cap === "number" ? text.slice(0, cap * 4) : text;
}

function saidOf({ role, content }: ChatCompletionRequest["messages"][number]): Heard {
  if (typeof content === "string") return { role, text: content, images: [] };
  const parts = content ?? [];
  const images = parts.flatMap(({ image_url: sent }) => {
    const image = z.object({ url: z.string() }).safeParse(sent);
    return image.success ? [image.data.url] : [];
  });
  return { role, text: parts.map((part) => part.text ?? "").join(""), images };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * The headers without those of rate limits: the mock states a limit of 60 requests a minute whatever it is sent, which a
 * gate would keep. Providers whose limits are real are in `limited`.
 */
function withoutLimits(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith("x-ratelimit-")));
}
