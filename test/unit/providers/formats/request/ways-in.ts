/** Every endpoint by which a client's fields reach an upstream, as the facts that admission gets. */
import { admit } from "../../../../../src/run/money/admit.ts";
import type { TokenBounds } from "../../../../../src/run/money/estimate.ts";
import { Ledger, NO_LIMITS, type Limits } from "../../../../../src/run/money/ledger.ts";
import { readLine } from "../../../../../src/batch/validate.ts";
import type { BatchUrl } from "../../../../../src/batch/endpoints.ts";
import type { CallFacts, Endpoint } from "../../../../../src/call.ts";
import { parseBatch } from "../../../../../src/contract/batch.ts";
import { DIALECT_BATCH, parseDialectQuery } from "../../../../../src/contract/dialects/dialects.ts";
import { readBatch } from "../../../../../src/contract/large-batch.ts";
import { parseQuery } from "../../../../../src/contract/query.ts";
import { callFactsOf } from "../../../../../src/providers/formats/request/call-facts.ts";
import { readRequest } from "../../../../../src/providers/formats/request/read.ts";
import { PLAIN_PRICE } from "../../../../support/engine.ts";

const encoder = new TextEncoder();

/** A field in its body; a pair, because objects put names such as `__proto__` elsewhere. */
export type Fields = readonly (readonly [name: string, value: unknown])[];

/** The facts of one call, or the field for which it is always refused. */
export type Read = { facts: CallFacts } | { refused: string | null };

export type WayIn = {
  name: string;
  /** The table that it reads. */
  family: Endpoint;
  /** Whether fields come in `params`, where some names are always refused. */
  isParams: boolean;
  read(fields: Fields): Read;
};

const BARE: Readonly<Record<Endpoint, Readonly<Record<string, unknown>>>> = {
  chat: { messages: [{ role: "user", content: "x" }] },
  completions: { prompt: "x" },
  embeddings: { input: "x" },
  responses: { input: "x" },
  messages: { messages: [{ role: "user", content: "x" }] },
};

const chosen = { model: "m", priority: 2, timeoutMs: null } as const;

const bodyOf = (family: Endpoint, fields: Fields): string => {
  const body = { ...BARE[family], ...Object.fromEntries(fields) };
  return JSON.stringify(body);
};

function passThrough(family: Endpoint): WayIn {
  return {
    name: `/v1, ${family}`,
    family,
    isParams: false,
    read: (fields) => {
      const read = readRequest(family, encoder.encode(bodyOf(family, fields)));
      return read.ok ? { facts: callFactsOf(read.value, chosen) } : { refused: paramOf(read.reason) };
    },
  };
}

function batchLine(url: BatchUrl, family: Endpoint): WayIn {
  return {
    name: `a batch's line, ${family}`,
    family,
    isParams: false,
    read: (fields) => {
      const envelope = `{"custom_id":"a","method":"POST","url":"${url}","body":${bodyOf(family, fields)}}`;
      const line = readLine(encoder.encode(envelope), { url, defaultModel: "m", serves: () => true });
      if (line.ok) return { facts: callFactsOf(line.value.facts, chosen) };
      return { refused: line.fault.param?.replace(/^body\./, "") ?? null };
    },
  };
}

type Parsed<T> = { ok: true; value: T } | { ok: false; reason: object };

function params(name: string, read: (fields: Record<string, unknown>) => Parsed<CallFacts | undefined>): WayIn {
  return {
    name,
    family: "chat",
    isParams: true,
    read: (fields) => {
      const parsed = read(Object.fromEntries(fields));
      if (!parsed.ok) return { refused: paramOf(parsed.reason)?.replace(/^(items\[0\]\.)?params\./, "") ?? null };
      if (parsed.value === undefined) throw new Error("no call was read");
      return { facts: parsed.value };
    },
  };
}

function paramOf(reason: object): string | null {
  return "param" in reason && typeof reason.param === "string" ? reason.param : null;
}

function firstFacts<T extends { calls: Iterable<{ facts: CallFacts }> }>(
  parsed: Parsed<T>,
): Parsed<CallFacts | undefined> {
  return parsed.ok ? { ok: true, value: [...parsed.value.calls][0]?.facts } : parsed;
}

function onlyFacts<T extends { facts: CallFacts }>(parsed: Parsed<T>): Parsed<CallFacts> {
  return parsed.ok ? { ok: true, value: parsed.value.facts } : parsed;
}

const dialectCall = (body: unknown): Parsed<{ facts: CallFacts }> => {
  const parsed = parseDialectQuery(body);
  return parsed.ok ? { ok: true, value: parsed.value.call } : parsed;
};

export const WAYS_IN: readonly WayIn[] = [
  passThrough("chat"),
  passThrough("completions"),
  passThrough("embeddings"),
  passThrough("responses"),
  passThrough("messages"),
  batchLine("/v1/chat/completions", "chat"),
  batchLine("/v1/completions", "completions"),
  batchLine("/v1/embeddings", "embeddings"),
  batchLine("/v1/responses", "responses"),
  params("/query", (fields) => onlyFacts(parseQuery({ prompt: "x", params: fields }))),
  params("/query with messages", (fields) => onlyFacts(parseQuery({ ...BARE.chat, params: fields }))),
  params("/batch, its defaults", (fields) => firstFacts(parseBatch({ prompts: ["x"], params: fields }))),
  params("/batch, an item", (fields) => firstFacts(parseBatch({ items: [{ prompt: "x", params: fields }] }))),
  params("/llm_query", (fields) => onlyFacts(dialectCall({ prompt: "x", params: fields }))),
  params("/llm_query_batched", (fields) =>
    firstFacts(readBatch(encoder.encode(JSON.stringify({ prompts: ["x"], params: fields })), DIALECT_BATCH)),
  ),
];

/** Ways in of messages whose content is given. */
export const CONTENT_WAYS: readonly { name: string; read(content: unknown): CallFacts }[] = [
  ...(["chat", "messages"] as const).map((family) => ({
    name: `/v1, ${family}`,
    read: (content: unknown) => factsOf(passThrough(family).read([["messages", [{ role: "user", content }]]])),
  })),
  {
    name: "/v1, responses",
    read: (content) => factsOf(passThrough("responses").read([["input", [{ role: "user", content }]]])),
  },
  {
    name: "/v1, embeddings",
    read: (content) => factsOf(passThrough("embeddings").read([["input", [{ content }]]])),
  },
  { name: "/query", read: (content) => take(onlyFacts(parseQuery({ messages: [{ role: "user", content }] }))) },
  {
    name: "/batch",
    read: (content) => take(firstFacts(parseBatch({ items: [{ messages: [{ role: "user", content }] }] }))),
  },
  {
    name: "/llm_query",
    read: (content) => take(onlyFacts(dialectCall({ prompt: [{ role: "user", content }] }))),
  },
  {
    name: "/llm_query_batched",
    read: (content) => {
      const body = JSON.stringify({ prompts: [[{ role: "user", content }]] });
      return take(firstFacts(readBatch(encoder.encode(body), DIALECT_BATCH)));
    },
  },
];

function factsOf(read: Read): CallFacts {
  if ("refused" in read) throw new Error(`refused for ${read.refused ?? "the body"}`);
  return read.facts;
}

function take(parsed: Parsed<CallFacts | undefined>): CallFacts {
  if (!parsed.ok || parsed.value === undefined) throw new Error(JSON.stringify(parsed));
  return parsed.value;
}

/** The reason for which admission refuses; null if it admits. */
export function refusalUnder(
  facts: CallFacts,
  limits: Partial<Limits>,
  { allowParams = [], bounds }: { allowParams?: readonly string[]; bounds?: TokenBounds } = {},
) {
  const ledger = new Ledger({ ...NO_LIMITS, ...limits });
  const admitted = admit(facts, PLAIN_PRICE, ledger, { allowParams, ...(bounds === undefined ? {} : { bounds }) });
  return admitted.kind === "refuse" ? admitted.reason : null;
}

/** A limit in every dimension, far above any call of these tests. */
export const LIMITED = { usd: 1e15, prompt_tokens: 1e12, completion_tokens: 1e12 };
