/** Upstreams that speak OpenAI's protocol: OpenAI itself, and most other providers and servers. */
import * as z from "zod";
import { PROMPT_TOKENS_FIXED_OPENAI, PROMPT_TOKENS_FIXED_TOOLS } from "../../../limits.ts";
import { providerAt } from "../../../run/money/prices.ts";
import type { TokenPrice } from "../../../run/money/token-price.ts";
import { baseUrlField, batchField, commonFields, commonOf, pricesOf, remoteFields } from "../../config/fields.ts";
import { wrongIssue, type Entry, type ParsedUpstreams } from "../../config/parsed.ts";
import { hasBatches, storedBaseUrl } from "../../config/address.ts";
import { remoteOf } from "../../config/remote.ts";
import type { Upstream } from "../../config/types.ts";
import { readCompletion } from "../../formats/response/chat.ts";
import { COMMON_LIMIT_HEADERS } from "../../limits/rate-headers.ts";
import { WRITTEN_UNASKED } from "../cache-writes.ts";
import { COMMON_FAILURES } from "../failures.ts";
import type { AutomaticCache, Kind } from "../kind.ts";
import { bearer, buildRequest } from "./request.ts";
import { atFirstUse } from "../../../at-first-use.ts";

const schema = atFirstUse(() =>
  z.strictObject({
    kind: z.literal("openai"),
    base_url: baseUrlField("/chat/completions"),
    batch: batchField(),
    cap_field: z
      .enum(["max_tokens", "max_completion_tokens"], { error: "must be max_tokens or max_completion_tokens" })
      .optional(),
    ...remoteFields(),
    ...commonFields(),
  }),
);

/** How the prompts of models are bounded that get OpenAI's messages. */
export const TEMPLATE = {
  fixedTokens: PROMPT_TOKENS_FIXED_OPENAI,
  toolsTokens: PROMPT_TOKENS_FIXED_TOOLS,
  learnsTemplate: true,
} as const;

export const openai: Kind = {
  parse,
  sends: "network",
  protocol: "openai",
  endpoints: {
    chat: "/chat/completions",
    completions: "/completions",
    embeddings: "/embeddings",
    responses: "/responses",
  },
  otherEndpoints: (name) => `/v1/messages needs an upstream that speaks Anthropic's protocol; ${name} speaks OpenAI's`,
  models: "/models",
  headers: {},
  keyHeaders: bearer,
  request: buildRequest,
  takesSchema: () => true,
  readAnswer: readCompletion,
  streams: "chat",
  failures: COMMON_FAILURES,
  limitHeaders: COMMON_LIMIT_HEADERS,
  promptCache,
  batches: "files",
  isRecordable: true,
};

function parse({ name, fields: entry, vars }: Entry): ParsedUpstreams {
  const parsed = schema().safeParse(entry);
  if (!parsed.success) return wrongIssue(name, parsed.error);
  const fields = parsed.data;
  const read = remoteOf(name, fields, { vars, keyHeaders: ["authorization"] });
  if (!read.ok) return read;
  const upstream: Upstream = {
    name,
    kind: "openai",
    baseUrl: storedBaseUrl(fields.base_url),
    ...read.remote,
    ...(hasBatches(fields) ? { batch: fields.batch } : {}),
    ...commonOf(fields, { models: ["*"], bounds: TEMPLATE }),
    capField: fields.cap_field ?? defaultCapField(fields.base_url),
    prices: pricesOf(fields.prices ?? {}, WRITTEN_UNASKED),
  };
  return { ok: true, upstreams: [upstream] };
}

/** OpenAI's newer models refuse `max_tokens`; most other servers know nothing else. */
function defaultCapField(baseUrl: string): Upstream["capField"] {
  return new URL(baseUrl).hostname === "api.openai.com" ? "max_completion_tokens" : "max_tokens";
}

function promptCache({ baseUrl }: Pick<Upstream, "baseUrl">, price: TokenPrice | null): AutomaticCache {
  if (providerAt(baseUrl) === "openai") return price?.writesWithoutMark === true ? "breakpoint" : "key";
  // A first call that the others wait for is worth it only where reads are cheaper.
  return price !== null && price.cachedInputPicoUsd < price.inputPicoUsd ? "implicit" : "none";
}
