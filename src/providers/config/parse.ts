/** Parses UPSTREAMS. Messages name what was expected and never what was found: a value may be a secret. */
import * as z from "zod";
import {
  NAME_CHARS_MAX,
  PROMPT_TOKENS_FIXED_ANTHROPIC,
  PROMPT_TOKENS_FIXED_OPENAI,
  PROMPT_TOKENS_FIXED_TOOLS,
} from "../../limits.ts";
import { CASSETTE_MODES } from "../../recordings/types.ts";
import type { Upstream } from "./types.ts";
import { resolveHeaders } from "./credentials.ts";
import {
  baseUrlField,
  batchField,
  commonFields,
  commonOf,
  patternError,
  pricesOf,
  remoteFields,
  type CacheWrites,
} from "./fields.ts";
import { resolveKeys } from "./keys.ts";
import { isRecord } from "../../text/json/record.ts";
import { SIMULATED_MODEL_PATTERNS } from "../simulated/model.ts";

/** The upstreams in the order listed, or the path of the first wrong field and what is expected there. */
export type ParsedUpstreams = { ok: true; upstreams: Upstream[] } | { ok: false; path: string; message: string };

const NAME = /^[a-z0-9][a-z0-9_-]*$/;

const simulatedSchema = z.strictObject({ kind: z.literal("simulated"), ...commonFields });

const pullSchema = z.strictObject({ kind: z.literal("pull"), ...commonFields });

const openaiSchema = z.strictObject({
  kind: z.literal("openai"),
  base_url: baseUrlField("/chat/completions"),
  batch: batchField,
  cap_field: z
    .enum(["max_tokens", "max_completion_tokens"], { error: "must be max_tokens or max_completion_tokens" })
    .optional(),
  ...remoteFields,
  ...commonFields,
});

const anthropicSchema = z.strictObject({
  kind: z.literal("anthropic"),
  base_url: baseUrlField("/messages").default("https://api.anthropic.com"),
  ...remoteFields,
  ...commonFields,
});

const tapeError = { error: "must be a name of 1 to 64 characters: a-z, 0-9, _ and -" };

const cassetteSchema = z.strictObject({
  kind: z.literal("cassette"),
  tape: z
    .string(tapeError)
    .regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, tapeError)
    .optional(),
  mode: z.enum(CASSETTE_MODES, { error: `must be one of ${CASSETTE_MODES.join(", ")}` }).default("replay"),
  upstream: z.record(z.string(), z.unknown(), { error: "must be the upstream whose answers are recorded, an object" }),
});

/**
 * Anthropic's price list: 1.25 times the input price for what is kept for five minutes, twice for an hour
 * (platform.claude.com/docs/en/build-with-claude/prompt-caching). Only what a request marks is written.
 */
const ANTHROPIC_WRITES: CacheWrites = { perInput: 1.25, perInput1h: 2, unasked: false };

/** Servers that speak OpenAI's protocol write to their caches by themselves; most charge nothing for it. */
const OPENAI_WRITES: CacheWrites = { unasked: true };

/** Parses the value of UPSTREAMS; `secret:NAME` in a key or header reads `vars[NAME]`. */
export function parseUpstreams(value: unknown, vars: Record<string, unknown>): ParsedUpstreams {
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
    case "pull":
      return parsePull(name, entry);
    case "openai":
      return parseOpenai(name, entry, vars);
    case "anthropic":
      return parseAnthropic(name, entry, vars);
    case "cassette":
      return parseCassette(name, entry, vars);
    default:
      return wrong([name, "kind"], 'must be "openai", "anthropic", "simulated", "pull" or "cassette"');
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
    streamUsage: "auto",
    ...commonOf(fields, { models: SIMULATED_MODEL_PATTERNS, bounds: {} }),
    capField: "max_tokens",
    prices: pricesOf(fields.prices ?? { "*": { input: 0.15, output: 0.6 } }, OPENAI_WRITES),
  };
  return { ok: true, upstreams: [upstream] };
}

/** Workers cost the gateway nothing, unless a price says what they cost their operator. They answer with JSON. */
function parsePull(name: string, entry: unknown): ParsedUpstreams {
  const parsed = pullSchema.safeParse(entry);
  if (!parsed.success) return wrongIssue(name, parsed.error);
  const fields = parsed.data;
  const upstream: Upstream = {
    name,
    kind: "pull",
    baseUrl: "",
    apiKey: null,
    headers: {},
    streamUsage: "auto",
    ...commonOf(fields, { models: ["*"], bounds: {} }),
    aggregate: "json",
    capField: "max_tokens",
    prices: pricesOf(fields.prices ?? { "*": { input: 0, output: 0 } }, OPENAI_WRITES),
  };
  return { ok: true, upstreams: [upstream] };
}

/** Where nothing is sent, no key is needed: a test that replays a tape has none. */
const CREDENTIALS = new Set(["api_key", "keys", "headers"]);

function parseCassette(name: string, entry: unknown, vars: Record<string, unknown>): ParsedUpstreams {
  const parsed = cassetteSchema.safeParse(entry);
  if (!parsed.success) return wrongIssue(name, parsed.error);
  const { tape, mode, upstream: inner } = parsed.data;
  if (inner["kind"] === "cassette" || inner["kind"] === "pull") {
    return wrong([name, "upstream", "kind"], 'must be "openai", "anthropic" or "simulated"');
  }
  const needed = Object.entries(inner).filter(([field]) => mode !== "replay" || !CREDENTIALS.has(field));
  const read = parseUpstream(name, Object.fromEntries(needed), vars);
  if (!read.ok) return { ...read, path: read.path.replace(/^UPSTREAMS\.[^.]*/, (own) => `${own}.upstream`) };
  const cassette = { tape: tape ?? name, mode };
  return { ok: true, upstreams: read.upstreams.map((upstream) => ({ ...upstream, cassette })) };
}

const OPENAI_TEMPLATE = {
  fixedTokens: PROMPT_TOKENS_FIXED_OPENAI,
  toolsTokens: PROMPT_TOKENS_FIXED_TOOLS,
  learnsTemplate: true,
} as const;

function parseOpenai(name: string, entry: unknown, vars: Record<string, unknown>): ParsedUpstreams {
  const parsed = openaiSchema.safeParse(entry);
  if (!parsed.success) return wrongIssue(name, parsed.error);
  const fields = parsed.data;
  const keys = resolveKeys(fields, vars);
  if (!keys.ok) return wrong([name, ...keys.field], keys.message);
  const headers = resolveHeaders(fields.headers, vars, keys.value.apiKey === null ? [] : ["authorization"]);
  if (!headers.ok) return wrong([name, "headers", ...headers.field], headers.message);
  const upstream: Upstream = {
    name,
    kind: "openai",
    baseUrl: withoutEndSlash(fields.base_url),
    ...keys.value,
    batch: fields.batch,
    headers: headers.value,
    streamUsage: fields.stream_usage,
    ...(fields.traceparent ? { traces: "client" } : {}),
    ...commonOf(fields, { models: ["*"], bounds: OPENAI_TEMPLATE }),
    capField: fields.cap_field ?? defaultCapField(fields.base_url),
    prices: pricesOf(fields.prices ?? {}, OPENAI_WRITES),
  };
  return { ok: true, upstreams: [upstream] };
}

function parseAnthropic(name: string, entry: unknown, vars: Record<string, unknown>): ParsedUpstreams {
  const parsed = anthropicSchema.safeParse(entry);
  if (!parsed.success) return wrongIssue(name, parsed.error);
  const fields = parsed.data;
  const keys = resolveKeys(fields, vars);
  if (!keys.ok) return wrong([name, ...keys.field], keys.message);
  const headers = resolveHeaders(
    fields.headers,
    vars,
    keys.value.apiKey === null ? [] : ["authorization", "x-api-key"],
  );
  if (!headers.ok) return wrong([name, "headers", ...headers.field], headers.message);
  const upstream: Upstream = {
    name,
    kind: "anthropic",
    // Anthropic's clients are given its base URL without the version, OpenAI's with it: both are understood.
    baseUrl: withoutEndSlash(withoutEndSlash(fields.base_url).replace(/\/v1$/, "")),
    ...keys.value,
    headers: headers.value,
    streamUsage: fields.stream_usage,
    ...(fields.traceparent ? { traces: "client" } : {}),
    ...commonOf(fields, {
      models: ["*"],
      bounds: { fixedTokens: PROMPT_TOKENS_FIXED_ANTHROPIC, learnsTemplate: true },
    }),
    capField: "max_tokens",
    prices: pricesOf(fields.prices ?? {}, ANTHROPIC_WRITES),
  };
  return { ok: true, upstreams: [upstream] };
}

function withoutEndSlash(url: string): string {
  return new URL(url).href.replace(/\/+$/, "");
}

/** OpenAI's newer models refuse `max_tokens`; most other servers know nothing else. */
function defaultCapField(baseUrl: string): Upstream["capField"] {
  return new URL(baseUrl).hostname === "api.openai.com" ? "max_completion_tokens" : "max_tokens";
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
