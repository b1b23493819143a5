/**
 * A provider that sells service tiers, as OpenAI does: flex costs half and may have no room, some models are not sold in it, and
 * the answer names the tier that served it, which need not be the one that was requested. It keeps its own bill.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { z } from "zod";

/** Dollars per million tokens, prompt and completion alike, by tier. */
export const TIER_USD = { default: 2, flex: 1 } as const;

export type TieredProvider = {
  baseUrl: string;
  /** The tier of each request in order, null = it names none; `status` of its answer. */
  requests: { prompt: string; tier: string | null; status: number }[];
  /** What the answers cost, USD. */
  billUsd: () => number;
  stop: () => Promise<void>;
};

const request = z.looseObject({
  model: z.string(),
  messages: z.array(z.looseObject({ content: z.string() })).min(1),
  service_tier: z.string().optional(),
});

type Request = z.infer<typeof request>;

/** Why a request is refused for its tier, as OpenAI says it; null = it is served. A prompt says what it meets. */
function refusalOf({ model, service_tier: tier }: Request, prompt: string): { status: number; error: object } | null {
  if (tier !== "flex") return null;
  if (model === "unsold") {
    const message = "Invalid service_tier argument: 'flex' is not supported with this model.";
    return {
      status: 400,
      error: { message, type: "invalid_request_error", param: "service_tier", code: "unsupported_value" },
    };
  }
  if (!prompt.includes("full")) return null;
  const message = "Resource unavailable: there is no capacity for flex processing right now.";
  return { status: 429, error: { message, type: "resource_unavailable", param: null, code: "resource_unavailable" } };
}

export async function startTieredProvider(): Promise<TieredProvider> {
  const requests: TieredProvider["requests"] = [];
  let billMicroUsd = 0;
  const served = (read: Request, prompt: string): object => {
    // A router that has no room itself serves at the standard tier, and says so.
    const tier = read.service_tier === "flex" && read.model !== "router" ? "flex" : "default";
    const tokens = Math.ceil(prompt.length / 4);
    billMicroUsd += 2 * tokens * TIER_USD[tier];
    return {
      id: "chatcmpl-1",
      object: "chat.completion",
      model: read.model,
      choices: [{ index: 0, message: { role: "assistant", content: prompt }, finish_reason: "stop" }],
      usage: { prompt_tokens: tokens, completion_tokens: tokens, total_tokens: 2 * tokens },
      service_tier: tier,
    };
  };
  const answer = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const pieces: Buffer[] = [];
    for await (const piece of incoming) pieces.push(Buffer.from(piece));
    const read = request.parse(JSON.parse(Buffer.concat(pieces).toString()));
    const prompt = read.messages.at(-1)?.content ?? "";
    const refusal = refusalOf(read, prompt);
    const status = refusal?.status ?? (prompt.includes("limit") && requests.length % 2 === 0 ? 429 : 200);
    requests.push({ prompt, tier: read.service_tier ?? null, status });
    const rateLimit = { message: "Rate limit reached", type: "requests", code: "rate_limit_exceeded" };
    const body = refusal ?? (status === 429 ? { error: rateLimit } : served(read, prompt));
    response.writeHead(status, { "content-type": "application/json", ...(status === 429 && { "retry-after": "0" }) });
    response.end(JSON.stringify("error" in body ? { error: body.error } : body));
  };
  const server = createServer((incoming, response) => {
    void answer(incoming, response).catch(() => response.writeHead(500).end());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    requests,
    billUsd: () => billMicroUsd / 1e6,
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
