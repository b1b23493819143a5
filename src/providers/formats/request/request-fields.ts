/**
 * The table of request fields: what each top-level field spends, by API family. Every endpoint uses it: `/query`, `/batch`
 * and the dialects as chat completions, `/v1/*` and the lines of `/v1/batches` as their own family.
 */
import type { Endpoint } from "../../../call.ts";
import { fieldTable, opaque, PROMPT, type FieldGroup, type FieldRule, type FieldTable } from "./field-table.ts";
import {
  AGENTS_LABELS,
  ANTHROPIC,
  EMBEDDINGS,
  FIREWORKS,
  GROQ,
  LLAMA_CPP,
  MISTRAL,
  OLLAMA,
  OPAQUE_FIELDS,
  OPENAI,
  OPENAI_RESPONSES,
  OPENROUTER,
  QWEN,
  SGLANG,
  TOGETHER,
  VLLM,
} from "./harmless-fields.ts";
import { CACHE_MARKS, COUNTED_TEXT, HOLDERS } from "./inner-fields.ts";
import { PRICE_FIELDS, STORED_PROMPT, UNRESERVABLE_FIELDS } from "./unreservable-fields.ts";

/** Fields that cap a completion. Only the one that the upstream reads is sent. */
export const CAP_SPELLINGS = [
  "max_tokens",
  "max_completion_tokens",
  "max_output_tokens",
  // Hugging Face's servers, llama.cpp (where it overrides `max_tokens`), and Anthropic's former API.
  "max_new_tokens",
  "n_predict",
  "max_tokens_to_sample",
] as const;
export type CapSpelling = (typeof CAP_SPELLINGS)[number];

const CAPS: Readonly<Record<string, FieldRule>> = Object.fromEntries(
  CAP_SPELLINGS.map((name) => [name, { kind: "cap" }] as const),
);

/** Fields that the gateway reads itself. */
const OWN: FieldGroup = "model stream";

/**
 * Prompt tokens that Mistral adds: its safety prompt has about 100, its reasoning prompt about 200. Both are published, and
 * doubled here because a new model may have a longer one.
 */
const MISTRAL_PROMPTS: Readonly<Record<string, FieldRule>> = {
  safe_prompt: { kind: "harmless", addsTokens: 200 },
  prompt_mode: { kind: "harmless", addsTokens: 400 },
};

/** The fields that all completing families share: in no family does another one's field spend more. */
const COMPLETING: readonly FieldGroup[] = [
  OWN,
  OPENAI,
  ANTHROPIC,
  OPENROUTER,
  MISTRAL,
  GROQ,
  TOGETHER,
  FIREWORKS,
  QWEN,
  VLLM,
  SGLANG,
  LLAMA_CPP,
  OLLAMA,
  opaque(OPAQUE_FIELDS),
  { betas: { kind: "betas" } },
  MISTRAL_PROMPTS,
  COUNTED_TEXT,
  HOLDERS,
  CACHE_MARKS,
  CAPS,
  { n: { kind: "multiplies" }, best_of: { kind: "multiplies" }, tools: PROMPT },
  PRICE_FIELDS,
  UNRESERVABLE_FIELDS,
];

export const REQUEST_FIELDS: Readonly<Record<Endpoint, FieldTable>> = {
  chat: fieldTable(...COMPLETING, { messages: PROMPT }),
  completions: fieldTable(...COMPLETING, { prompt: PROMPT }),
  messages: fieldTable(...COMPLETING, { messages: PROMPT, system: PROMPT }),
  responses: fieldTable(...COMPLETING, OPENAI_RESPONSES, opaque(AGENTS_LABELS), {
    input: PROMPT,
    instructions: PROMPT,
    prompt: STORED_PROMPT,
  }),
  // Some upstreams embed conversations.
  embeddings: fieldTable(OWN, EMBEDDINGS, opaque("metadata"), PRICE_FIELDS, UNRESERVABLE_FIELDS, {
    input: PROMPT,
    messages: PROMPT,
  }),
};
