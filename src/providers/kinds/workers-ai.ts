/** Cloudflare's own models over the binding `env.AI`: no key, and no address. */
import * as z from "zod";
import { NAME_CHARS_MAX } from "../../limits.ts";
import { commonFields, commonOf, pricesOf } from "../config/fields.ts";
import { wrongIssue, type Entry, type ParsedUpstreams } from "../config/parsed.ts";
import type { Upstream } from "../config/types.ts";
import type { ModelBinding } from "../config/binding.ts";
import { WRITTEN_UNASKED } from "./cache-writes.ts";
import type { Kind } from "./kind.ts";
import { openai, TEMPLATE } from "./openai/kind.ts";
import { atFirstUse } from "../../at-first-use.ts";

/** The name of the binding in wrangler.toml. */
export const AI_BINDING = "AI";

/**
 * Below the host whose prices the catalogue has: what Cloudflare charges is the same over REST. Nothing is sent there.
 */
const BASE_URL = "https://api.cloudflare.com/client/v4/ai";

const gatewayError = { error: "must be the id of an AI Gateway" };

const schema = atFirstUse(() =>
  z.strictObject({
    kind: z.literal("workers-ai"),
    gateway: z.string(gatewayError).min(1, gatewayError).max(NAME_CHARS_MAX, gatewayError).optional(),
    ...commonFields(),
  }),
);

const bindingField = atFirstUse(() =>
  z.custom<ModelBinding>(
    (value) => typeof value === "object" && value !== null && "run" in value && typeof value.run === "function",
  ),
);

export const workersAi: Kind = {
  ...openai,
  parse,
  sends: "binding",
  endpoints: { chat: "/chat/completions", embeddings: "/embeddings" },
  otherEndpoints: (name) => `${name} is the Workers AI binding, which has chats and embeddings only`,
  models: null,
  keyHeaders: () => ({}),
  batches: null,
  storesNoResponses: "the Workers AI binding stores no responses",
};

function parse({ name, fields: entry, vars }: Entry): ParsedUpstreams {
  const parsed = schema().safeParse(entry);
  if (!parsed.success) return wrongIssue(name, parsed.error);
  const fields = parsed.data;
  const found = bindingField().safeParse(vars[AI_BINDING]);
  const upstream: Upstream = {
    name,
    kind: "workers-ai",
    baseUrl: BASE_URL,
    apiKey: null,
    headers: {},
    streamUsage: "auto",
    bound: {
      ...(found.success ? { binding: found.data } : {}),
      ...(fields.gateway === undefined ? {} : { gateway: fields.gateway }),
    },
    ...commonOf(fields, { models: ["@cf/*"], bounds: TEMPLATE }),
    capField: "max_tokens",
    prices: pricesOf(fields.prices ?? {}, WRITTEN_UNASKED),
  };
  return { ok: true, upstreams: [upstream] };
}
