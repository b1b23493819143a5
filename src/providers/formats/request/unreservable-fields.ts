/** Request fields that spend more than a reservation covers, each with the reason and the values that are harmless. */
import {
  fieldTable,
  opaque,
  SPENDS_ALL,
  SPENDS_COMPLETION,
  SPENDS_PRICE,
  SPENDS_PROMPT,
  typed,
  type FieldRule,
  type Unreservable,
} from "./field-table.ts";

const price = (why: string, ...harmless: readonly string[]): Extract<FieldRule, { kind: "price" }> => ({
  kind: "price",
  why,
  spends: SPENDS_PRICE,
  harmless,
});

const spends = (spent: Unreservable["spends"], why: string, ...harmless: readonly string[]): FieldRule => ({
  kind: "unreservable",
  why,
  spends: spent,
  harmless,
});

const FALLBACKS = price("Fallback models have other prices than the one reserved.");
const BEAMS = spends(SPENDS_COMPLETION, "Beams are completions beyond the cap.", "false", "1");
const LATE = spends(SPENDS_ALL, "The upstream answers before the work is done, so its cost is never seen.", "false");
const UNSEEN = spends(
  SPENDS_PROMPT,
  "It adds to the prompt what the upstream holds, and the reservation cannot count that.",
);
const SEARCH = spends(
  SPENDS_ALL,
  "Searches are billed beside the tokens, and what they find joins the prompt.",
  "false",
);
const RUNS_CODE = spends(SPENDS_ALL, "Code that the provider runs is billed beside the tokens.", "false");
const SUMMARIES = {
  kind: "unreservable",
  why: "Summaries made on the way are billed beyond the cap.",
  spends: SPENDS_ALL,
} as const;
const THINKING = spends(SPENDS_COMPLETION, "Qwen's own API bills thoughts beyond the cap.", "false");
const PAYER = price("It decides who pays, which only the operator may.");
const MORE_OF_AN_IMAGE = spends(SPENDS_PROMPT, "It may make more tokens of a medium than are reserved.", "false");

/**
 * Edits of Anthropic's API that take old thoughts and results of tools out of the prompt before the model reads it. What it
 * puts in the place of a result is shorter than the block around that, which is reserved.
 */
const CLEARING_EDIT = typed(
  "clear_thinking_20251015 clear_tool_uses_20250919",
  fieldTable("type", opaque("keep trigger clear_at_least clear_tool_inputs exclude_tools")),
);

/** Fields that select another price than the reserved one. Tiers listed as harmless cost the same or less. */
export const PRICE_FIELDS: Readonly<Record<string, FieldRule>> = {
  service_tier: price(
    "Another tier may have a higher price than the one reserved.",
    ...["auto", "default", "flex", "standard", "standard_only", "on_demand"],
  ),
  speed: price("Another speed has another price than the one reserved.", "standard"),
  inference_geo: price("Another region has another price than the one reserved.", "global"),
  billing_policy: PAYER,
  user_profile_id: PAYER,
  workspace_id: PAYER,
  fallback_credit_token: PAYER,
  models: { ...FALLBACKS, isPlain: true },
  fallbacks: FALLBACKS,
  route: price("A router may pick a model of another price."),
  provider: price("A router's provider may have another price than the one reserved."),
  moderation: price("Moderation is done by another model."),
  safety_model: price("Moderation is done by another model."),
};

/** Fields that cause work beyond the tokens that bytes and cap bound. */
export const UNRESERVABLE_FIELDS: Readonly<Record<string, FieldRule>> = {
  preset: spends(SPENDS_ALL, "A router's preset may set the model, the cap and the prompt."),
  modalities: spends(SPENDS_COMPLETION, "Sounds and images have prices of their own.", "text"),
  audio: spends(SPENDS_COMPLETION, "Sound has a price of its own."),
  image_config: spends(SPENDS_COMPLETION, "Images have prices of their own."),

  // Work that is billed by use, and whose results are added to the prompt.
  web_search_options: SEARCH,
  search_parameters: SEARCH,
  search_settings: SEARCH,
  enable_search: SEARCH,
  search_options: SEARCH,
  web_search: SEARCH,
  compound_custom: spends(SPENDS_ALL, "The system's models and tools are billed beside the tokens."),
  plugins: spends(SPENDS_ALL, "Plugins of a router are billed by use, not per token."),
  mcp_servers: spends(SPENDS_ALL, "Servers' tools and answers join the prompt unseen."),
  container: spends(SPENDS_PROMPT, "Containers are billed by time, not per token."),
  enable_code_interpreter: RUNS_CODE,
  context_management: { ...SUMMARIES, harmlessList: { name: "edits", element: CLEARING_EDIT } },
  compaction: SUMMARIES,

  // Completions beyond the cap.
  prediction: spends(SPENDS_COMPLETION, "Predicted tokens that are rejected are billed as completion beyond the cap."),
  enable_thinking: THINKING,
  thinking_budget: THINKING,
  use_beam_search: BEAMS,
  num_beams: BEAMS,
  background: LATE,
  deferred: LATE,

  // Prompt tokens that the bytes of the request do not bound.
  previous_response_id: UNSEEN,
  conversation: UNSEEN,
  thread: UNSEEN,
  data_sources: UNSEEN,
  cached_content: UNSEEN,
  prompt_embeds: UNSEEN,
  chat_template: spends(SPENDS_PROMPT, "A template can repeat the prompt any number of times."),
  mm_processor_kwargs: MORE_OF_AN_IMAGE,
  media_io_kwargs: MORE_OF_AN_IMAGE,
  vl_high_resolution_images: MORE_OF_AN_IMAGE,
};

/** `prompt` of the Responses API names a stored template; elsewhere it is the prompt itself. */
export const STORED_PROMPT = spends(SPENDS_PROMPT, "A stored prompt's length is not known here.");

/** Content that the provider keeps and adds to the prompt. */
export const CACHED_CONTENT = UNSEEN;

/** The effort of the provider before it answers, if it has another price. */
export const REASONING_MODE = spends(SPENDS_ALL, "Another mode works more than the cap counts.", "standard");

/** The lifetime of marked content in OpenAI's cache. */
export const CACHE_OPTION_TTL = price("Writing to a cache that lives longer may have another price.", "30m");
