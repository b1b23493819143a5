/** Upstreams that speak Anthropic's Messages API. */
import * as z from "zod";
import { PROMPT_TOKENS_FIXED_ANTHROPIC } from "../../../limits.ts";
import { messagesOutputFormat } from "../../../text/schema/forms.ts";
import {
  baseUrlField,
  batchField,
  commonFields,
  commonOf,
  pricesOf,
  remoteFields,
  type CacheWrites,
} from "../../config/fields.ts";
import { wrongIssue, type Entry, type ParsedUpstreams } from "../../config/parsed.ts";
import { hasBatches, storedBaseUrl } from "../../config/address.ts";
import { remoteOf } from "../../config/remote.ts";
import type { Upstream } from "../../config/types.ts";
import { readAnthropicMessage } from "../../formats/anthropic/answer.ts";
import { COMMON_LIMIT_HEADERS } from "../../limits/rate-headers.ts";
import { COMMON_FAILURES } from "../failures.ts";
import type { Kind } from "../kind.ts";
import { buildAnthropicRequest, keyHeaders, VERSION_HEADERS } from "./request.ts";
import { atFirstUse } from "../../../at-first-use.ts";

const schema = atFirstUse(() =>
  z.strictObject({
    kind: z.literal("anthropic"),
    base_url: baseUrlField("/messages").default("https://api.anthropic.com"),
    batch: batchField(),
    ...remoteFields(),
    ...commonFields(),
  }),
);

/**
 * Anthropic's price list: 1.25 times the input price for what is kept for five minutes, twice for an hour
 * (platform.claude.com/docs/en/build-with-claude/prompt-caching). Only what a request marks is written.
 */
const WRITES: CacheWrites = { perInput: 1.25, perInput1h: 2, unasked: false };

export const anthropic: Kind = {
  parse,
  sends: "network",
  protocol: "anthropic",
  endpoints: { messages: "/v1/messages" },
  otherEndpoints: (name) => `${name} speaks Anthropic's protocol; use a model of another upstream, or /v1/messages`,
  models: "/v1/models?limit=1000",
  headers: VERSION_HEADERS,
  keyHeaders,
  request: buildAnthropicRequest,
  takesSchema: (wanted) => messagesOutputFormat(wanted) !== null,
  readAnswer: readAnthropicMessage,
  streams: "messages",
  failures: COMMON_FAILURES,
  limitHeaders: COMMON_LIMIT_HEADERS,
  promptCache: () => "mark",
  batches: "messages",
  isRecordable: true,
};

function parse({ name, fields: entry, vars }: Entry): ParsedUpstreams {
  const parsed = schema().safeParse(entry);
  if (!parsed.success) return wrongIssue(name, parsed.error);
  const fields = parsed.data;
  const read = remoteOf(name, fields, { vars, keyHeaders: ["authorization", "x-api-key"] });
  if (!read.ok) return read;
  const upstream: Upstream = {
    name,
    kind: "anthropic",
    // Anthropic's clients are given its base URL without the version, OpenAI's with it: both are understood.
    baseUrl: storedBaseUrl(storedBaseUrl(fields.base_url).replace(/\/v1$/, "")),
    ...read.remote,
    ...(hasBatches(fields) ? { batch: fields.batch } : {}),
    ...commonOf(fields, {
      models: ["*"],
      bounds: { fixedTokens: PROMPT_TOKENS_FIXED_ANTHROPIC, learnsTemplate: true },
    }),
    capField: "max_tokens",
    prices: pricesOf(fields.prices ?? {}, WRITES),
  };
  return { ok: true, upstreams: [upstream] };
}
