/** The fields of an upstream's configuration that several kinds share, and what becomes of them. */
import { PROMPT_CACHES } from "../cache-rules.ts";
import * as z from "zod";
import type { TokenBounds } from "../../run/money/estimate.ts";
import type { TokenRates } from "../../run/money/token-price.ts";
import {
  ALLOW_PARAMS_MAX,
  ATTEMPTS_DEFAULT,
  ATTEMPTS_MAX,
  DEADLINE_MS_MAX,
  MEDIA_TOKENS_MAX,
  NAME_CHARS_MAX,
  PRICE_USD_PER_MILLION_MAX,
  PROMPT_TOKENS_FIXED_MAX,
  PROMPT_TOKENS_PER_BYTE,
  PROVIDER_POLL_MS_DEFAULT,
  PROVIDER_POLL_MS_MAX,
  PROVIDER_POLL_MS_MIN,
  TIMEOUT_MS_DEFAULT,
  TIMEOUT_MS_MAX,
  UNRESERVABLE_NAME_CHARS_MAX,
  UPSTREAM_IN_FLIGHT_DEFAULT,
  UPSTREAM_IN_FLIGHT_MAX,
  UPSTREAM_KEYS_MAX,
} from "../../limits.ts";
import { modelPlaceFault, queryField } from "./address.ts";
import { authField } from "./auth.ts";
import { adaptiveField, adaptiveOf } from "./adaptive.ts";
import { hedgeField, hedgeOf } from "./hedge.ts";
import type { Price, Upstream } from "./types.ts";
import { scaledUp } from "../../run/money/decimal.ts";
import { atFirstUse } from "../../at-first-use.ts";

/** USD per million tokens is as many micro-USD per token: a million pico-USD each. */
const PICO_USD_PER_TOKEN = 1e6;

const integer = (min: number, max: number, what: string) => {
  const error = `must be a whole number of ${what} from ${min} to ${max}`;
  return z.number({ error }).int({ error }).min(min, { error }).max(max, { error });
};

const usdError = `must be USD per million tokens, a number from 0 to ${PRICE_USD_PER_MILLION_MAX}`;
const usdPerMillion = z
  .number({ error: usdError })
  .min(0, { error: usdError })
  .max(PRICE_USD_PER_MILLION_MAX, { error: usdError });

const rateFields = {
  input: usdPerMillion,
  cached_input: usdPerMillion.optional(),
  cache_write: usdPerMillion.optional(),
  cache_write_1h: usdPerMillion.optional(),
  output: usdPerMillion,
};

const priceSchema = atFirstUse(() =>
  z.strictObject({
    ...rateFields,
    flex: z.strictObject(rateFields).optional(),
    batch: z.strictObject(rateFields).optional(),
    service_tiers: z
      .record(z.string().min(1).max(NAME_CHARS_MAX), z.strictObject(rateFields), {
        error: "must be an object of prices by service tier",
      })
      .optional(),
  }),
);

type Rates = Omit<z.infer<ReturnType<typeof priceSchema>>, "service_tiers" | "flex" | "batch">;

/** What a name of a model or a pattern of such names must be. */
export const patternError = `must be a model name or pattern of 1 to ${NAME_CHARS_MAX} characters`;
const pattern = z
  .string({ error: patternError })
  .min(1, { error: patternError })
  .max(NAME_CHARS_MAX, { error: patternError });

const allowedError = `must be the name of a request field, of 1 to ${UNRESERVABLE_NAME_CHARS_MAX} characters`;
const allowedParam = atFirstUse(() =>
  z
    .string({ error: allowedError })
    .min(1, { error: allowedError })
    .max(UNRESERVABLE_NAME_CHARS_MAX, { error: allowedError }),
);

const perByteError = "must be a number above 0 and at most 1";

/** Fields of every kind. */
export const commonFields = atFirstUse(() => ({
  prompt_tokens_per_byte: z
    .number({ error: perByteError })
    .gt(0, { error: perByteError })
    .max(1, { error: perByteError })
    .default(PROMPT_TOKENS_PER_BYTE),
  prompt_tokens_per_call: integer(0, PROMPT_TOKENS_FIXED_MAX, "tokens").optional(),
  media_tokens_max: integer(1, MEDIA_TOKENS_MAX, "tokens").optional(),
  file_tokens_max: integer(1, MEDIA_TOKENS_MAX, "tokens").optional(),
  allow_params: z
    .array(allowedParam(), { error: "must be a list of names of request fields" })
    .max(ALLOW_PARAMS_MAX, { error: `must have at most ${ALLOW_PARAMS_MAX} names` })
    .default([]),
  models: z.array(pattern, { error: "must be a list of model names or patterns" }).optional(),
  max_in_flight: integer(1, UPSTREAM_IN_FLIGHT_MAX, "attempts").default(UPSTREAM_IN_FLIGHT_DEFAULT),
  timeout_ms: integer(1, TIMEOUT_MS_MAX, "milliseconds").default(TIMEOUT_MS_DEFAULT),
  max_attempts: integer(1, ATTEMPTS_MAX, "attempts").default(ATTEMPTS_DEFAULT),
  errors_cost: z.enum(["free", "reservation"], { error: "must be free or reservation" }).default("free"),
  aggregate: z.enum(["auto", "stream", "json"], { error: "must be auto, stream or json" }).default("auto"),
  prompt_cache: z.enum(PROMPT_CACHES, { error: `must be one of ${PROMPT_CACHES.join(", ")}` }).default("auto"),
  abort_cost: z.enum(["reservation", "seen"], { error: "must be reservation or seen" }).default("reservation"),
  adaptive: adaptiveField(),
  hedge: hedgeField(),
  prices: z.record(pattern, priceSchema(), { error: "must be an object of prices by model" }).optional(),
}));

const batchWait = (min: number, max: number) => integer(min, max, "milliseconds");

/** How calls go through the upstream's Batch API. */
export const batchField = atFirstUse(() =>
  z
    .strictObject({
      poll_ms: batchWait(PROVIDER_POLL_MS_MIN, PROVIDER_POLL_MS_MAX).default(PROVIDER_POLL_MS_DEFAULT),
      margin_ms: batchWait(0, DEADLINE_MS_MAX).optional(),
    })
    .transform(({ poll_ms: pollMs, margin_ms: marginMs = null }) => ({ pollMs, marginMs }))
    .default({ pollMs: PROVIDER_POLL_MS_DEFAULT, marginMs: null }),
);

const keyError = "must be secret: and the name of a secret; a key itself has no place in a list";
const keysError = `must be a list of 1 to ${UPSTREAM_KEYS_MAX} texts such as secret:NAME`;

/** Fields of the kinds that are reached over HTTP. */
export const remoteFields = atFirstUse(() => ({
  api_key: z.string({ error: "must be text: a key, or secret: and the name of a secret" }).optional(),
  keys: z
    .array(z.string({ error: keyError }).regex(/^secret:[\w-]+$/, { error: keyError }), { error: keysError })
    .min(1, { error: keysError })
    .max(UPSTREAM_KEYS_MAX, { error: keysError })
    .optional(),
  auth: authField(),
  query: queryField(),
  headers: z
    .record(z.string(), z.string({ error: "must be text" }), { error: "must be an object of texts" })
    .default({}),
  stream_usage: z.enum(["auto", "pass", "edit"], { error: "must be auto, pass or edit" }).default("auto"),
  traceparent: z.boolean({ error: "must be true or false" }).default(false),
}));

type Common = z.infer<z.ZodObject<ReturnType<typeof commonFields>>>;

/** What every kind takes from its common fields; `models` serves where none are listed. */
export function commonOf(
  fields: Common,
  defaults: { models: readonly string[]; bounds: Pick<TokenBounds, "fixedTokens" | "toolsTokens" | "learnsTemplate"> },
): Pick<
  Upstream,
  | "models"
  | "maxInFlight"
  | "timeoutMs"
  | "maxAttempts"
  | "allowParams"
  | "errorsCost"
  | "aggregate"
  | "promptCache"
  | "abortCost"
  | "adaptive"
  | "hedge"
  | "bounds"
> {
  const bounds: TokenBounds = {
    tokensPerByte: fields.prompt_tokens_per_byte,
    mediaTokensMax: fields.media_tokens_max ?? null,
  };
  if (fields.file_tokens_max !== undefined) bounds.fileTokensMax = fields.file_tokens_max;
  const fixed = fields.prompt_tokens_per_call;
  return {
    models: fields.models ?? defaults.models,
    maxInFlight: fields.max_in_flight,
    timeoutMs: fields.timeout_ms,
    maxAttempts: fields.max_attempts,
    errorsCost: fields.errors_cost,
    allowParams: fields.allow_params,
    aggregate: fields.aggregate,
    promptCache: fields.prompt_cache,
    abortCost: fields.abort_cost,
    adaptive: adaptiveOf(fields.adaptive),
    ...hedgeOf(fields.hedge),
    bounds: {
      ...bounds,
      ...defaults.bounds,
      ...(fixed === undefined ? {} : { fixedTokens: fixed, toolsTokens: fixed, vouched: true }),
    },
  };
}

/** A base URL: http or https, without credentials, query, fragment or `route`, which is added to it. */
export function baseUrlField(route: string) {
  return z
    .string({ error: `must be the URL under which ${route} is found` })
    .superRefine((text, ctx) => checkBaseUrl(text, route, ctx));
}

function checkBaseUrl(text: string, route: string, ctx: z.RefinementCtx): void {
  const refuse = (message: string): void => void ctx.addIssue({ code: "custom", message });
  if (!URL.canParse(text)) return refuse("must be a URL such as https://host/v1");
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:") return refuse("must be an http or https URL");
  if (url.username !== "" || url.password !== "") return refuse("must not contain credentials: use api_key");
  if (text.includes("?") || text.includes("#"))
    return refuse("must not contain a query or fragment: parameters go into query");
  const misplaced = modelPlaceFault(url);
  if (misplaced !== null) return refuse(misplaced);
  if (url.pathname.replace(/\/+$/, "").endsWith(route)) refuse(`must not end in ${route}, which is added to it`);
}

/**
 * What writing to the provider's cache costs where the configuration names no price, as multiples of the input price,
 * and whether prompts are written without a mark in the request.
 */
export type CacheWrites = { perInput: number; perInput1h: number; unasked: false } | { unasked: true };

/**
 * Configured prices, in the order listed. Cached input costs as much as input where no price is named, and so do writes
 * where nothing is known of them.
 */
export function pricesOf(
  prices: NonNullable<Common["prices"]>,
  writes: CacheWrites,
): { pattern: string; price: Price }[] {
  return Object.entries(prices).map(([pattern, { service_tiers: named, flex, batch, ...rates }]) => {
    const price: Price = ratesOf(rates, writes);
    if (writes.unasked && price.cacheWritePicoUsd !== undefined) price.writesWithoutMark = true;
    const tiers = { ...named, ...(flex !== undefined && { flex }), ...(batch !== undefined && { batch }) };
    if (named !== undefined || Object.keys(tiers).length > 0) {
      price.serviceTiers = Object.fromEntries(Object.entries(tiers).map(([name, of]) => [name, ratesOf(of, writes)]));
    }
    return { pattern, price };
  });
}

function ratesOf({ input, cached_input, cache_write, cache_write_1h, output }: Rates, writes: CacheWrites): TokenRates {
  const pico = (usd: number): number => scaledUp(usd, PICO_USD_PER_TOKEN);
  const rates: TokenRates = {
    inputPicoUsd: pico(input),
    cachedInputPicoUsd: pico(cached_input ?? input),
    outputPicoUsd: pico(output),
  };
  const write = cache_write ?? (writes.unasked ? undefined : input * writes.perInput);
  // A price that is known of shorter lifetimes only bounds the longer one from below.
  const write1h = cache_write_1h ?? (writes.unasked ? undefined : Math.max(input * writes.perInput1h, write ?? 0));
  if (write !== undefined) rates.cacheWritePicoUsd = pico(write);
  if (write1h !== undefined) rates.cacheWrite1hPicoUsd = pico(write1h);
  return rates;
}
