/** Parses UPSTREAMS. Every message says what was expected and never what was found: a value may be a secret. */
import { z } from "zod";
import {
  ATTEMPTS_DEFAULT,
  ATTEMPTS_MAX,
  MEDIA_TOKENS_MAX,
  NAME_CHARS_MAX,
  PRICE_USD_PER_MILLION_MAX,
  PROMPT_TOKENS_PER_BYTE,
  TIMEOUT_MS_DEFAULT,
  TIMEOUT_MS_MAX,
  UPSTREAM_IN_FLIGHT_DEFAULT,
  UPSTREAM_IN_FLIGHT_MAX,
} from "../limits.ts";
import type { Price, Upstream } from "./config.ts";
import { scaledUp } from "./decimal.ts";
import { isRecord } from "./record.ts";
import { SIMULATED_MODEL_PATTERNS } from "./simulated-model.ts";

/** The upstreams in the order listed, or the path of the first wrong field and what is expected there. */
export type ParsedUpstreams = { ok: true; upstreams: Upstream[] } | { ok: false; path: string; message: string };

const NAME = /^[a-z0-9][a-z0-9_-]*$/;
const SECRET_REFERENCE = /^secret:(.*)$/s;
/** A header's value may hold these only; fetch throws on others, and quotes the value. */
const HEADER_VALUE = /^[\t\x20-\x7e]*$/;
const HEADER_NAME = /^[a-z0-9!#$%&'*+.^_`|~-]+$/;
/** Headers that frame the request; configured ones would contradict the body that is sent. */
const FRAMING_HEADERS = new Set([
  "host",
  "content-type",
  "content-length",
  "content-encoding",
  "transfer-encoding",
  "connection",
]);

/** USD per million tokens is as many micro-USD per token: a million pico-USD each. */
const PICO_USD_PER_TOKEN = 1e6;

const integer = (max: number, what: string) => {
  const error = `must be a whole number of ${what} from 1 to ${max}`;
  return z.number({ error }).int({ error }).min(1, { error }).max(max, { error });
};

const usdError = `must be USD per million tokens, a number from 0 to ${PRICE_USD_PER_MILLION_MAX}`;
const usdPerMillion = z
  .number({ error: usdError })
  .min(0, { error: usdError })
  .max(PRICE_USD_PER_MILLION_MAX, { error: usdError });

const priceSchema = z.strictObject({
  input: usdPerMillion,
  cached_input: usdPerMillion.optional(),
  output: usdPerMillion,
});

const patternError = `must be a model name or pattern of 1 to ${NAME_CHARS_MAX} characters`;
const pattern = z
  .string({ error: patternError })
  .min(1, { error: patternError })
  .max(NAME_CHARS_MAX, { error: patternError });

const perByteError = "must be a number above 0 and at most 1";

const common = {
  prompt_tokens_per_byte: z
    .number({ error: perByteError })
    .gt(0, { error: perByteError })
    .max(1, { error: perByteError })
    .default(PROMPT_TOKENS_PER_BYTE),
  media_tokens_max: integer(MEDIA_TOKENS_MAX, "tokens").optional(),
  models: z.array(pattern, { error: "must be a list of model names or patterns" }).optional(),
  max_in_flight: integer(UPSTREAM_IN_FLIGHT_MAX, "attempts").default(UPSTREAM_IN_FLIGHT_DEFAULT),
  timeout_ms: integer(TIMEOUT_MS_MAX, "milliseconds").default(TIMEOUT_MS_DEFAULT),
  max_attempts: integer(ATTEMPTS_MAX, "attempts").default(ATTEMPTS_DEFAULT),
  prices: z.record(pattern, priceSchema, { error: "must be an object of prices by model" }).optional(),
};

const simulatedSchema = z.strictObject({ kind: z.literal("simulated"), ...common });

const openaiSchema = z.strictObject({
  kind: z.literal("openai"),
  base_url: z.string({ error: "must be the URL under which /chat/completions is found" }).superRefine(checkBaseUrl),
  api_key: z.string({ error: "must be text: a key, or secret: and the name of a secret" }).optional(),
  headers: z
    .record(z.string(), z.string({ error: "must be text" }), { error: "must be an object of texts" })
    .default({}),
  cap_field: z
    .enum(["max_tokens", "max_completion_tokens"], { error: "must be max_tokens or max_completion_tokens" })
    .optional(),
  ...common,
});

/** Parses the value of UPSTREAMS; `secret:NAME` in a key or header reads `vars[NAME]`. */
export function parseUpstreams(value: unknown, vars: Record<string, unknown>): ParsedUpstreams {
  if (value === undefined || value === null) return wrong([], "is not set: name at least one upstream");
  if (!isRecord(value)) return wrong([], "must be an object of upstreams by name, or JSON text of one");
  const upstreams: Upstream[] = [];
  for (const [name, entry] of Object.entries(value)) {
    if (!NAME.test(name) || name.length > NAME_CHARS_MAX) {
      return wrong([name], "an upstream's name starts with a-z or 0-9 and goes on with a-z, 0-9, _ and -");
    }
    const parsed = parseUpstream(name, entry, vars);
    if (!parsed.ok) return parsed;
    upstreams.push(...parsed.upstreams);
  }
  return upstreams.length === 0 ? wrong([], "names no upstream") : { ok: true, upstreams };
}

function parseUpstream(name: string, entry: unknown, vars: Record<string, unknown>): ParsedUpstreams {
  if (!isRecord(entry)) return wrong([name], "must be an object");
  switch (entry["kind"]) {
    case "simulated":
      return parseSimulated(name, entry);
    case "openai":
      return parseOpenai(name, entry, vars);
    case "anthropic":
      return wrong(
        [name, "kind"],
        '"anthropic" is not supported yet; use an OpenAI-compatible base_url, kind "openai"',
      );
    default:
      return wrong([name, "kind"], 'must be "openai" or "simulated"');
  }
}

function parseSimulated(name: string, entry: unknown): ParsedUpstreams {
  const parsed = simulatedSchema.safeParse(entry);
  if (!parsed.success) return wrongIssue(name, parsed.error);
  const fields = parsed.data;
  const upstream: Upstream = {
    name,
    kind: "simulated",
    baseUrl: "",
    apiKey: null,
    headers: {},
    models: fields.models ?? SIMULATED_MODEL_PATTERNS,
    maxInFlight: fields.max_in_flight,
    timeoutMs: fields.timeout_ms,
    maxAttempts: fields.max_attempts,
    capField: "max_tokens",
    bounds: { tokensPerByte: fields.prompt_tokens_per_byte, mediaTokensMax: fields.media_tokens_max ?? null },
    prices: pricesOf(fields.prices ?? { "*": { input: 0.15, output: 0.6 } }),
  };
  return { ok: true, upstreams: [upstream] };
}

function parseOpenai(name: string, entry: unknown, vars: Record<string, unknown>): ParsedUpstreams {
  const parsed = openaiSchema.safeParse(entry);
  if (!parsed.success) return wrongIssue(name, parsed.error);
  const fields = parsed.data;
  const apiKey = fields.api_key === undefined || fields.api_key === "" ? null : resolveSecret(fields.api_key, vars);
  if (apiKey !== null && !apiKey.ok) return wrong([name, "api_key"], apiKey.message);
  const headers: Record<string, string> = {};
  for (const [header, configured] of Object.entries(fields.headers)) {
    const key = header.toLowerCase();
    const value = resolveSecret(configured, vars);
    if (!value.ok) return wrong([name, "headers", header], value.message);
    if (!HEADER_NAME.test(key)) return wrong([name, "headers", header], "is not a header name");
    if (FRAMING_HEADERS.has(key)) return wrong([name, "headers", header], "is set by the gateway");
    if (key === "authorization" && apiKey !== null) {
      return wrong([name, "headers", header], "contradicts api_key: set one of the two");
    }
    headers[key] = value.value;
  }
  const upstream: Upstream = {
    name,
    kind: "openai",
    baseUrl: new URL(fields.base_url).href.replace(/\/+$/, ""),
    apiKey: apiKey === null ? null : apiKey.value,
    headers,
    models: fields.models ?? ["*"],
    maxInFlight: fields.max_in_flight,
    timeoutMs: fields.timeout_ms,
    maxAttempts: fields.max_attempts,
    capField: fields.cap_field ?? defaultCapField(fields.base_url),
    bounds: { tokensPerByte: fields.prompt_tokens_per_byte, mediaTokensMax: fields.media_tokens_max ?? null },
    prices: pricesOf(fields.prices ?? {}),
  };
  return { ok: true, upstreams: [upstream] };
}

/** OpenAI's newer models refuse `max_tokens`; most other servers know nothing else. */
function defaultCapField(baseUrl: string): Upstream["capField"] {
  return new URL(baseUrl).hostname === "api.openai.com" ? "max_completion_tokens" : "max_tokens";
}

function resolveSecret(
  configured: string,
  vars: Record<string, unknown>,
): { ok: true; value: string } | { ok: false; message: string } {
  const secret = SECRET_REFERENCE.exec(configured)?.[1];
  const value = secret === undefined ? configured : vars[secret];
  if (secret !== undefined && (value === undefined || value === null || value === "")) {
    return { ok: false, message: `reads the secret ${secret}, which is not set` };
  }
  const whose = secret === undefined ? "holds" : `reads the secret ${secret}, which holds`;
  if (typeof value !== "string") return { ok: false, message: `${whose} something other than text` };
  if (HEADER_VALUE.test(value) && value.trim() === value) return { ok: true, value };
  return { ok: false, message: `${whose} a line break, outer white space or a character that no header can carry` };
}

function checkBaseUrl(text: string, ctx: z.RefinementCtx): void {
  const refuse = (message: string): void => void ctx.addIssue({ code: "custom", message });
  if (!URL.canParse(text)) return refuse("must be a URL such as https://host/v1");
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:") return refuse("must be an http or https URL");
  if (url.username !== "" || url.password !== "") return refuse("must not hold credentials: use api_key");
  if (text.includes("?") || text.includes("#")) return refuse("must not hold a query or fragment");
  if (/\/chat\/completions\/*$/.test(url.pathname)) refuse("must not end in /chat/completions, which is added to it");
}

function pricesOf(prices: Record<string, z.infer<typeof priceSchema>>): { pattern: string; price: Price }[] {
  return Object.entries(prices).map(([model, { input, cached_input, output }]) => ({
    pattern: model,
    price: {
      inputPicoUsd: scaledUp(input, PICO_USD_PER_TOKEN),
      cachedInputPicoUsd: scaledUp(cached_input ?? input, PICO_USD_PER_TOKEN),
      outputPicoUsd: scaledUp(output, PICO_USD_PER_TOKEN),
    },
  }));
}

function wrongIssue(name: string, error: z.ZodError): ParsedUpstreams {
  const issue = error.issues[0];
  if (issue === undefined) return wrong([name], "is not valid");
  const path = [name, ...issue.path];
  if (issue.code === "unrecognized_keys") return wrong([...path, ...issue.keys.slice(0, 1)], "is not a known field");
  if (issue.code === "invalid_key") return wrong(path, patternError);
  return wrong(path, issue.message);
}

function wrong(path: readonly PropertyKey[], message: string): ParsedUpstreams {
  return { ok: false, path: ["UPSTREAMS", ...path.map(String)].join("."), message };
}
