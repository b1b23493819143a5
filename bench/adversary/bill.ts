/** What a request costs at an upstream of some personality, read and counted as that server would. */
import { isTrue, itemsOf, jsonOf, member, numberOf, textOf, type KeyPolicy, type Value } from "./lenient-json.ts";
import { pictureTokens } from "./pictures.ts";
import { resolved, thoughtsOf } from "./references.ts";
import { FILE_TOKENS, LARGE_FACTOR, MEDIA_TOKENS, PRICE, type Personality } from "./personalities.ts";
import type { Random } from "./random.ts";
import { countTokens } from "./tokenizers.ts";

export type Family = "chat" | "completions" | "responses" | "messages" | "embeddings";

/** Nano-USD and tokens; `notes` say what made it expensive, to help find the hole. */
export type Bill = {
  promptTokens: number;
  cachedTokens: number;
  write5mTokens: number;
  write1hTokens: number;
  completionTokens: number;
  nanoUsd: number;
  tier: string | null;
  streams: boolean;
  tellsUsage: boolean;
  /** The cap that it read; null = none. */
  cap: number | null;
  notes: readonly string[];
};

/** What the model writes when nothing stops it. */
const COMPLETION_TOKENS_MAX = 8_000;
/** Tokens that each message adds, at most. */
const PER_MESSAGE = 4;

/** Names that its parameters have and that bill nothing; of all others, `extras` takes what is a number as a multiplier. */
const FREE = new Set(
  (
    "model messages prompt input system instructions tools functions tool_choice function_call max_tokens " +
    "max_completion_tokens max_output_tokens n best_of temperature top_p top_k top_a min_p typical_p tfs_z seed " +
    "random_seed stop stop_sequences stop_token_ids stream stream_options user metadata logprobs top_logprobs " +
    "prompt_logprobs logit_bias presence_penalty frequency_penalty repetition_penalty repeat_penalty length_penalty " +
    "response_format text reasoning reasoning_effort thinking verbosity parallel_tool_calls service_tier store " +
    "prompt_cache_key prompt_cache_retention safety_identifier safe_prompt cache_control encoding_format dimensions " +
    "suffix echo min_tokens ignore_eos truncation include usage priority keep_alive guided_json guided_regex " +
    "guided_choice structured_outputs chat_template_kwargs documents output_config include_reasoning reasoning_format " +
    "max_tool_calls speed inference_geo skip_special_tokens add_generation_prompt"
  ).split(" "),
);

/** `betas`: what the header of that name holds. */
export function billOf(personality: Personality, family: Family, body: Value, random: Random, betas = ""): Bill {
  const request = personality.extras === true ? withExtraBody(body) : body;
  return new Biller(personality, family, request, random).bill(betas);
}

/** Proxies that merge what the client puts into `extra_body` over the rest. */
function withExtraBody(body: Value): Value {
  const extra = member(body, "extra_body", "last");
  if (body.kind !== "object" || extra?.kind !== "object") return body;
  return { kind: "object", members: [...body.members, ...extra.members] };
}

class Biller {
  readonly #personality: Personality;
  readonly #family: Family;
  readonly #body: Value;
  readonly #random: Random;
  readonly #keys: KeyPolicy;
  readonly #notes: string[] = [];
  #write5m = false;
  #write1h = false;

  constructor(personality: Personality, family: Family, body: Value, random: Random) {
    this.#personality = personality;
    this.#family = family;
    this.#body = body;
    this.#random = random;
    this.#keys = personality.keys;
  }

  bill(betas: string): Bill {
    const prompts = this.#prompts();
    const prompt = this.#promptTokens() + this.#extraPromptTokens() + this.#resolvedTokens(betas);
    const cap = this.#cap();
    const completionTokens = this.#completionTokens(cap, prompts) + this.#thoughts(cap);
    // Each prompt of a list is a prompt of its own, with the template of its own.
    const promptTokens = prompt + this.#hiddenTokens() * prompts;
    const split = this.#split(promptTokens);
    const { tier, factor } = this.#tier();
    const nanoUsd =
      (split.plain * PRICE.input +
        split.cached * PRICE.cached +
        split.write5m * PRICE.write5m +
        split.write1h * PRICE.write1h +
        completionTokens * PRICE.output) *
        factor *
        this.#priceFactor() +
      this.#fees();
    return {
      promptTokens,
      cachedTokens: split.cached,
      write5mTokens: split.write5m,
      write1hTokens: split.write1h,
      completionTokens,
      nanoUsd: Math.ceil(nanoUsd),
      tier,
      streams: isTrue(this.#get("stream")),
      tellsUsage: isTrue(member(this.#get("stream_options"), "include_usage", this.#keys)),
      cap,
      notes: this.#notes,
    };
  }

  #get(name: string): Value | undefined {
    return member(this.#body, name, this.#keys);
  }

  #count(text: string): number {
    return countTokens(this.#personality.tokenizer, text);
  }

  #hiddenTokens(): number {
    if (this.#family === "embeddings") return 0;
    // No template is put around a plain prompt, only the token that begins it.
    if (this.#family === "completions") return 1;
    const tools = itemsOf(this.#get("tools")).length + itemsOf(this.#get("functions")).length;
    const hidden = this.#personality.template + (tools > 0 ? this.#personality.toolsTemplate : 0);
    if (hidden > 128) this.#notes.push(`${hidden} hidden tokens`);
    return hidden;
  }

  /** How many prompts a list holds; 1 for all that is no list of prompts. */
  #prompts(): number {
    if (this.#family !== "completions") return 1;
    const list = itemsOf(this.#get("prompt"));
    const isList = list.some((item) => item.kind === "string" || item.kind === "array");
    return isList ? Math.max(1, list.length) : 1;
  }

  #promptTokens(): number {
    let tokens = 0;
    for (const name of ["messages", "input", "prompt", "system", "instructions", "suffix"]) {
      const value = this.#get(name);
      if (value !== undefined) tokens += this.#contentTokens(value, name);
    }
    for (const name of ["tools", "functions", "response_format", "documents", "chat_template_kwargs", "text"]) {
      const value = this.#get(name);
      if (value !== undefined && value.kind !== "null") tokens += this.#count(jsonOf(value));
    }
    if (this.#family === "messages") this.#findMarks(this.#body);
    return tokens;
  }

  /** Tokens of a conversation, a list of parts, a text or a list of tokens. */
  #contentTokens(value: Value, field: string): number {
    if (value.kind === "string") return this.#count(value.text);
    if (value.kind === "number") return 1;
    if (value.kind === "array") return value.items.reduce((sum, item) => sum + this.#contentTokens(item, field), 0);
    if (value.kind !== "object") return 0;
    const role = member(value, "role", this.#keys);
    return role === undefined ? this.#partTokens(value) : PER_MESSAGE + this.#messageTokens(value);
  }

  #messageTokens(message: Value): number {
    let tokens = 0;
    for (const name of ["content", "name", "reasoning_content", "reasoning", "refusal"]) {
      const value = member(message, name, this.#keys);
      if (value !== undefined) tokens += this.#contentTokens(value, name);
    }
    for (const name of ["tool_calls", "function_call"]) {
      const value = member(message, name, this.#keys);
      if (value !== undefined && value.kind !== "null") tokens += this.#count(jsonOf(value));
    }
    return tokens;
  }

  #partTokens(part: Value): number {
    const get = (name: string) => member(part, name, this.#keys);
    const type = textOf(get("type")) ?? "";
    if (
      ["image_url", "image", "input_image"].some((name) => get(name) !== undefined) ||
      ["image", "input_image"].includes(type)
    ) {
      const { sees } = this.#personality;
      if (sees !== undefined) return this.#picture(pictureTokens(sees, part, this.#keys), type);
      const list = itemsOf(get("image_url") ?? get("source") ?? get("image"));
      return this.#media(MEDIA_TOKENS * Math.max(1, list.length), `${type} as an image`);
    }
    if (get("input_audio") !== undefined || get("audio_url") !== undefined) return this.#media(MEDIA_TOKENS, "a sound");
    if (["file", "document_url", "video_url", "file_data", "file_id"].some((name) => get(name) !== undefined)) {
      return this.#media(FILE_TOKENS, "a file");
    }
    const source = get("source");
    if (source?.kind === "object") return this.#sourceTokens(source) + this.#looseTokens(part, ["source"]);
    return this.#looseTokens(part, []);
  }

  #sourceTokens(source: Value): number {
    const type = textOf(member(source, "type", this.#keys));
    const content = member(source, "content", this.#keys);
    const data = member(source, "data", this.#keys);
    const names = ["file_id", "url"].some((name) => textOf(member(source, name, this.#keys)) !== null);
    if (this.#personality.resolves === true && names) return this.#media(FILE_TOKENS, "a named document");
    if (content !== undefined) return this.#contentTokens(content, "content");
    if (type === "text" && data !== undefined) return this.#contentTokens(data, "data");
    return this.#media(FILE_TOKENS, "a document");
  }

  /** All text of a part: its texts, and the JSON input of tool calls. */
  #looseTokens(part: Value, without: readonly string[]): number {
    let tokens = 0;
    for (const name of ["text", "content", "thinking", "data", "refusal", "title", "context", "output", "arguments"]) {
      const value = member(part, name, this.#keys);
      if (value !== undefined && !without.includes(name)) tokens += this.#contentTokens(value, name);
    }
    const input = member(part, "input", this.#keys);
    return input === undefined || input.kind === "null" ? tokens : tokens + this.#count(jsonOf(input));
  }

  /** An image by its size, or a document in its place. */
  #picture(tokens: number | null, type: string): number {
    return tokens === null
      ? this.#media(FILE_TOKENS, "a document as an image")
      : this.#media(tokens, `${type} as an image`);
  }

  #media(tokensMax: number, what: string): number {
    this.#notes.push(`${what}: ${tokensMax} tokens`);
    return tokensMax;
  }

  /** Cache marks, at any depth. */
  #findMarks(value: Value): void {
    if (value.kind === "array") value.items.forEach((item) => this.#findMarks(item));
    if (value.kind !== "object") return;
    const mark = member(value, "cache_control", this.#keys);
    if (mark?.kind === "object") {
      if (textOf(member(mark, "ttl", this.#keys)) === "1h") this.#write1h = true;
      else this.#write5m = true;
    }
    for (const [, item] of value.members) this.#findMarks(item);
  }

  #split(promptTokens: number): { plain: number; cached: number; write5m: number; write1h: number } {
    const none = { plain: 0, cached: 0, write5m: 0, write1h: 0 };
    if (this.#write1h) return this.#noting("written for an hour", { ...none, write1h: promptTokens });
    // Embeddings are made at one price: no cache is kept of them.
    if (this.#family === "embeddings") return { ...none, plain: promptTokens };
    if (this.#write5m || this.#personality.writesByItself === true) return { ...none, write5m: promptTokens };
    const cached = this.#random.chance(0.2) ? Math.floor(promptTokens / 2) : 0;
    return { ...none, plain: promptTokens - cached, cached };
  }

  #noting<T>(note: string, value: T): T {
    this.#notes.push(note);
    return value;
  }

  #cap(): number | null {
    const caps = this.#personality.caps
      .map((name) => numberOf(this.#get(name)))
      .filter((cap): cap is number => cap !== null && cap >= 1);
    if (caps.length === 0) return null;
    return Math.floor(this.#personality.largestCap === true ? Math.max(...caps) : (caps[0] ?? 1));
  }

  #completionTokens(cap: number | null, prompts: number): number {
    if (this.#family === "embeddings") return 0;
    const max = Math.min(cap ?? COMPLETION_TOKENS_MAX, COMPLETION_TOKENS_MAX);
    const each = this.#random.chance(0.5) ? max : Math.max(1, Math.floor(max * this.#random.fraction() ** 2));
    if (cap === null && each > 4_096) this.#notes.push(`no cap read: ${each} tokens`);
    const candidates = this.#family === "completions" || this.#personality.extras === true;
    const choices = Math.max(this.#counted("n"), candidates ? this.#counted("best_of") : 1);
    return each * choices * prompts + this.#extraCompletionTokens(each);
  }

  /** A parameter that is a whole number of at least 1; 1 if it is missing or something else. */
  #counted(name: string): number {
    if (this.#family === "messages" || this.#family === "responses") return 1;
    const count = numberOf(this.#get(name));
    if (count === null || count < 1) return 1;
    return Math.min(128, Math.floor(count));
  }

  #tier(): { tier: string | null; factor: number } {
    if (this.#personality.tiers !== true) return { tier: null, factor: 1 };
    const requested = textOf(this.#get("service_tier")) ?? "auto";
    if (requested === "flex" || requested === "batch") return { tier: requested, factor: 0.5 };
    if (requested === "priority" || requested === "scale") {
      return this.#noting(`tier ${requested}`, { tier: requested, factor: 2 });
    }
    return { tier: this.#family === "messages" ? "standard" : "default", factor: 1 };
  }

  #priceFactor(): number {
    const large = (textOf(this.#get("model")) ?? "").startsWith("m-large") ? LARGE_FACTOR : 1;
    if (this.#personality.tiers !== true) return large;
    const fast = textOf(this.#get("speed")) === "fast" ? this.#noting("fast", 6) : 1;
    const geo = textOf(this.#get("inference_geo")) === "us" ? this.#noting("in the US", 1.1) : 1;
    return large * fast * geo;
  }

  #resolvedTokens(betas: string): number {
    if (this.#personality.resolves !== true) return 0;
    const { promptTokens, notes } = resolved(this.#body, betas, this.#keys);
    this.#notes.push(...notes);
    return promptTokens;
  }

  #thoughts(cap: number | null): number {
    if (this.#personality.resolves !== true || this.#family === "embeddings") return 0;
    const tokens = thoughtsOf(this.#body, cap ?? COMPLETION_TOKENS_MAX, this.#keys);
    return tokens === 0 ? 0 : this.#noting(`thoughts: ${tokens} completion tokens`, tokens);
  }

  #extraPromptTokens(): number {
    if (this.#personality.extras !== true) return 0;
    let tokens = 0;
    const found = (name: string, added: number) => {
      tokens += this.#noting(`${name}: ${added} prompt tokens`, added);
    };
    if (isTrue(this.#get("enable_search"))) found("enable_search", 3_000);
    for (const name of ["search_parameters", "web_search_options", "plugins", "data_sources", "previous_response_id"]) {
      const value = this.#get(name);
      if (value !== undefined && value.kind !== "null") found(name, 5_000);
    }
    if (textOf(this.#get("chat_template")) !== null) found("chat_template", 20_000);
    const copies = numberOf(this.#get("repeat_prompt")) ?? 0;
    if (copies > 0) found("repeat_prompt", Math.min(1_000, copies) * 100);
    return tokens;
  }

  #extraCompletionTokens(each: number): number {
    if (this.#personality.extras !== true) return 0;
    let tokens = 0;
    const found = (name: string, added: number) => {
      tokens += this.#noting(`${name}: ${added} completion tokens`, added);
    };
    const prediction = this.#get("prediction");
    if (prediction?.kind === "object") found("prediction", this.#count(jsonOf(prediction)));
    if (isTrue(this.#get("enable_thinking"))) found("enable_thinking", 4_000);
    if (isTrue(this.#get("use_beam_search"))) found("use_beam_search", 4 * each);
    const beams = this.#counted("num_beams");
    if (beams > 1) found("num_beams", (beams - 1) * each);
    if (this.#body.kind === "object") {
      for (const [name, value] of this.#body.members) {
        if (FREE.has(name) || !name.startsWith("x_")) continue;
        const times = numberOf(value) ?? (isTrue(value) ? 2 : 0);
        if (times > 0) found(name, Math.min(100, Math.floor(times)) * each);
      }
    }
    return tokens;
  }

  #fees(): number {
    const searches = itemsOf(this.#get("tools")).filter((tool) => {
      const type = textOf(member(tool, "type", this.#keys)) ?? "";
      return type.startsWith("web_search");
    }).length;
    return searches === 0 ? 0 : this.#noting(`${searches} hosted tools`, searches * 10_000_000);
  }
}
