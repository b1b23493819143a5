/**
 * The top-level fields of a request that spend what no reservation covers. What spends nothing of that kind passes: null,
 * the harmless values listed, and everything this page does not name.
 */
import type { Dimension } from "../errors.ts";
import { firstElement, nextElement, valueEnd, type JsonMember } from "./json-scan.ts";
import {
  cannotBound,
  SPENDS_ALL,
  SPENDS_COMPLETION,
  SPENDS_PRICE,
  SPENDS_PROMPT,
  type Reading,
} from "./json-reading.ts";
import { keyAt } from "./json-key.ts";

type Rule = {
  why: string;
  spends: readonly Dimension[];
  /** Scalars that spend nothing extra; of an array, all elements must be listed, so an empty one is always harmless. */
  harmless?: readonly string[];
};

const FALLBACKS: Rule = { why: "Fallback models have other prices than the one reserved.", spends: SPENDS_PRICE };
const BEAMS: Rule = {
  why: "Beams are completions beyond the cap.",
  spends: SPENDS_COMPLETION,
  harmless: ["false", "1"],
};
const LATE: Rule = {
  why: "The upstream answers before the work is done, so its cost is never seen.",
  spends: SPENDS_ALL,
  harmless: ["false"],
};
const UNSEEN: Rule = {
  why: "It adds to the prompt what the upstream holds, and the reservation cannot count that.",
  spends: SPENDS_PROMPT,
};

const RULES: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  // Prices other than the reserved one. Tiers that are listed as harmless cost the same or less.
  [
    "service_tier",
    {
      why: "Another tier may have a higher price than the one reserved.",
      spends: SPENDS_PRICE,
      harmless: ["auto", "default", "flex", "standard", "standard_only", "on_demand"],
    },
  ],
  [
    "speed",
    {
      why: "Another speed has another price than the one reserved.",
      spends: SPENDS_PRICE,
      harmless: ["standard"],
    },
  ],
  [
    "inference_geo",
    {
      why: "Another region has another price than the one reserved.",
      spends: SPENDS_PRICE,
      harmless: ["global"],
    },
  ],
  ["billing_policy", { why: "It decides who pays, which only the operator may.", spends: SPENDS_PRICE }],
  ["models", FALLBACKS],
  ["fallbacks", FALLBACKS],
  ["route", { why: "A router may pick a model of another price.", spends: SPENDS_PRICE }],
  ["provider", { why: "A router's provider may have another price than the one reserved.", spends: SPENDS_PRICE }],
  ["preset", { why: "A router's preset may set the model, the cap and the prompt.", spends: SPENDS_ALL }],
  ["modalities", { why: "Sounds and images have prices of their own.", spends: SPENDS_COMPLETION, harmless: ["text"] }],
  ["audio", { why: "Sound has a price of its own.", spends: SPENDS_COMPLETION }],

  // Work billed by use, whose findings join the prompt.
  ["web_search_options", { why: "Searches are billed per call, not per token.", spends: SPENDS_PROMPT }],
  ["search_parameters", { why: "Searches are billed per source, not per token.", spends: SPENDS_PROMPT }],
  ["plugins", { why: "Plugins of a router are billed by use, not per token.", spends: SPENDS_ALL }],
  ["mcp_servers", { why: "Servers' tools and answers join the prompt unseen.", spends: SPENDS_ALL }],
  ["container", { why: "Containers are billed by time, not per token.", spends: SPENDS_PROMPT }],
  ["context_management", { why: "Summaries made on the way are billed beyond the cap.", spends: SPENDS_ALL }],
  ["compaction", { why: "Summaries made on the way are billed beyond the cap.", spends: SPENDS_ALL }],

  // Completions beyond the cap.
  [
    "prediction",
    { why: "Predicted tokens that are rejected are billed as completion beyond the cap.", spends: SPENDS_COMPLETION },
  ],
  ["use_beam_search", BEAMS],
  ["num_beams", BEAMS],
  ["background", LATE],
  ["deferred", LATE],

  // Prompts that no byte of the request accounts for.
  ["previous_response_id", UNSEEN],
  ["conversation", UNSEEN],
  ["thread", UNSEEN],
  ["data_sources", UNSEEN],
  ["cached_content", UNSEEN],
  ["chat_template", { why: "A template can repeat the prompt any number of times.", spends: SPENDS_PROMPT }],
  ["mm_processor_kwargs", { why: "It may make more tokens of an image than are reserved.", spends: SPENDS_PROMPT }],
  ["extra_body", { why: "What an upstream takes from it is not read here.", spends: SPENDS_ALL }],
]);

/** `prompt` of the Responses API names a stored template; everywhere else it is the prompt itself. */
const STORED_PROMPT: Rule = { ...UNSEEN, why: "A stored prompt's length is not known here." };

/** Notes a top-level field that spends what no reservation covers. */
export function readUnbounded(reading: Reading, field: JsonMember, isResponses: boolean): void {
  const rule = isResponses && field.name === "prompt" ? STORED_PROMPT : RULES.get(field.name);
  if (rule === undefined || isHarmless(reading.bytes, field, rule.harmless ?? [])) return;
  cannotBound(reading, { field: field.name, why: rule.why, spends: rule.spends });
}

function isHarmless(bytes: Uint8Array, { kind, start, end }: JsonMember, harmless: readonly string[]): boolean {
  if (kind === "null") return true;
  if (kind !== "array") return isListed(bytes, start, end, harmless);
  for (let at = firstElement(bytes, start); at !== -1;) {
    const elementEnd = valueEnd(bytes, at);
    if (!isListed(bytes, at, elementEnd, harmless)) return false;
    at = nextElement(bytes, elementEnd);
  }
  return true;
}

function isListed(bytes: Uint8Array, start: number, end: number, harmless: readonly string[]): boolean {
  if (harmless.length === 0) return false;
  const isText = bytes[start] === 0x22;
  return harmless.includes(isText ? keyAt(bytes, start + 1, end - 1) : keyAt(bytes, start, end));
}

/** Suffixes and prefixes by which a router's model names buy more than a model. */
const ROUTED_MODEL = /:online$|^@preset\//;

/** Notes a model name that makes a router do more than call a model. */
export function readRoutedModel(reading: Reading, model: string): void {
  if (!ROUTED_MODEL.test(model)) return;
  const why = "The name makes a router search the web or apply a preset, which is not part of the model's price.";
  cannotBound(reading, { field: "model", why, spends: SPENDS_ALL });
}
