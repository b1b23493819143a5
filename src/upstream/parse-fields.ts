/** The fields of an upstream's configuration that several kinds share, and what becomes of them. */
import { z } from "zod";
import type { TokenBounds } from "../budget/estimate.ts";
import {
  ATTEMPTS_DEFAULT,
  ATTEMPTS_MAX,
  MEDIA_TOKENS_MAX,
  NAME_CHARS_MAX,
  PRICE_USD_PER_MILLION_MAX,
  PROMPT_TOKENS_FIXED_MAX,
  PROMPT_TOKENS_PER_BYTE,
  TIMEOUT_MS_DEFAULT,
  TIMEOUT_MS_MAX,
  UPSTREAM_IN_FLIGHT_DEFAULT,
  UPSTREAM_IN_FLIGHT_MAX,
} from "../limits.ts";
import type { Price, Upstream } from "./config.ts";
import { scaledUp } from "./decimal.ts";

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

const priceSchema = z.strictObject({
  input: usdPerMillion,
  cached_input: usdPerMillion.optional(),
  cache_write: usdPerMillion.optional(),
  output: usdPerMillion,
});

/** What a name of a model or a pattern of such names must be. */
export const patternError = `must be a model name or pattern of 1 to ${NAME_CHARS_MAX} characters`;
const pattern = z
  .string({ error: patternError })
  .min(1, { error: patternError })
  .max(NAME_CHARS_MAX, { error: patternError });

const perByteError = "must be a number above 0 and at most 1";

/** Fields of every kind. */
export const commonFields = {
  prompt_tokens_per_byte: z
    .number({ error: perByteError })
    .gt(0, { error: perByteError })
    .max(1, { error: perByteError })
    .default(PROMPT_TOKENS_PER_BYTE),
  prompt_tokens_per_call: integer(0, PROMPT_TOKENS_FIXED_MAX, "tokens").optional(),
  media_tokens_max: integer(1, MEDIA_TOKENS_MAX, "tokens").optional(),
  models: z.array(pattern, { error: "must be a list of model names or patterns" }).optional(),
  max_in_flight: integer(1, UPSTREAM_IN_FLIGHT_MAX, "attempts").default(UPSTREAM_IN_FLIGHT_DEFAULT),
  timeout_ms: integer(1, TIMEOUT_MS_MAX, "milliseconds").default(TIMEOUT_MS_DEFAULT),
  max_attempts: integer(1, ATTEMPTS_MAX, "attempts").default(ATTEMPTS_DEFAULT),
  prices: z.record(pattern, priceSchema, { error: "must be an object of prices by model" }).optional(),
};

/** Fields of the kinds that are reached over HTTP. */
export const remoteFields = {
  api_key: z.string({ error: "must be text: a key, or secret: and the name of a secret" }).optional(),
  headers: z
    .record(z.string(), z.string({ error: "must be text" }), { error: "must be an object of texts" })
    .default({}),
};

type Common = z.infer<z.ZodObject<typeof commonFields>>;

/** What every kind takes from its common fields; `models` serves where none are listed. */
export function commonOf(
  fields: Common,
  defaults: { models: readonly string[]; promptTokensPerCall: number },
): Pick<Upstream, "models" | "maxInFlight" | "timeoutMs" | "maxAttempts" | "bounds"> {
  const bounds: TokenBounds = {
    tokensPerByte: fields.prompt_tokens_per_byte,
    mediaTokensMax: fields.media_tokens_max ?? null,
  };
  const fixedTokens = fields.prompt_tokens_per_call ?? defaults.promptTokensPerCall;
  return {
    models: fields.models ?? defaults.models,
    maxInFlight: fields.max_in_flight,
    timeoutMs: fields.timeout_ms,
    maxAttempts: fields.max_attempts,
    bounds: fixedTokens === 0 ? bounds : { ...bounds, fixedTokens },
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
  if (url.username !== "" || url.password !== "") return refuse("must not hold credentials: use api_key");
  if (text.includes("?") || text.includes("#")) return refuse("must not hold a query or fragment");
  if (url.pathname.replace(/\/+$/, "").endsWith(route)) refuse(`must not end in ${route}, which is added to it`);
}

/**
 * Configured prices, in the order listed. Cached input costs as much as input where no price is named, and writing to
 * the provider's cache `cacheWritePerInput` times as much; null = the price is left open.
 */
export function pricesOf(
  prices: NonNullable<Common["prices"]>,
  cacheWritePerInput: number | null,
): { pattern: string; price: Price }[] {
  return Object.entries(prices).map(([model, { input, cached_input, cache_write, output }]) => {
    const price: Price = {
      inputPicoUsd: scaledUp(input, PICO_USD_PER_TOKEN),
      cachedInputPicoUsd: scaledUp(cached_input ?? input, PICO_USD_PER_TOKEN),
      outputPicoUsd: scaledUp(output, PICO_USD_PER_TOKEN),
    };
    const write = cache_write ?? (cacheWritePerInput === null ? null : input * cacheWritePerInput);
    if (write !== null) price.cacheWritePicoUsd = scaledUp(write, PICO_USD_PER_TOKEN);
    return { pattern: model, price };
  });
}
