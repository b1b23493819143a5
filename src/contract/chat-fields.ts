/** Reads the parts of a native request that are fields of a chat completion, with the reader and the tables of `/v1`. */
import type { UnreservableField } from "../call.ts";
import type { Reason } from "../errors.ts";
import { PROMPT_BYTES_MAX, TEXT_LOOK_BYTES_MIN } from "../limits.ts";
import { specialFacts, type SpecialFacts } from "../providers/formats/request/call-facts.ts";
import type { ThinkingBudget } from "../providers/formats/request/thinking.ts";
import { chatPartReading } from "../providers/formats/request/read.ts";
import { atOnce, type Sliced } from "../text/bytes/slices.ts";
import { normalisedGrowth } from "../text/tokens/normalised-bytes.ts";
import { countingTextTokens } from "../text/tokens/text-bound.ts";
import type { Parsed } from "./errors.ts";
import { utf8Bytes } from "./text.ts";

/** The admission facts of a part of a chat completion. */
export type ChatFields = {
  /** Bytes as JSON, which is how it is stored. */
  jsonBytes: number;
  /** Bytes that are read as text: without the data of media. */
  textBytes: number;
  /** Upper bound of the tokens that those bytes are. */
  textTokensMax: number;
  mediaParts: number;
  /** A cap that a field of the part names; null = none. */
  maxTokens: number | null;
  special: SpecialFacts;
  /** Budgets of thoughts, by their fields in the part, and these fields from the root of the request. */
  budgets: readonly ThinkingBudget[];
  budgetField: (field: string) => string;
};

/** The sizes of a text. */
export type TextSize = Pick<ChatFields, "textBytes" | "textTokensMax" | "jsonBytes">;

/** Names a field from the root of the request; null = the part as a whole. */
type PartPath = (field: string | null) => string;

const encoder = new TextEncoder();

/**
 * Reads `value`: the fields of a chat completion, or, with the name of one, that field alone. Its nesting must have been
 * bounded before. Refuses what no upstream accepts.
 */
export function readChatFields(value: unknown, name: "" | "messages", path: PartPath): Parsed<ChatFields> {
  return atOnce(chatFieldsReading(value, name, path));
}

/** The same in slices. */
export function* chatFieldsReading(value: unknown, name: "" | "messages", path: PartPath): Sliced<Parsed<ChatFields>> {
  const bytes = encoder.encode(name === "" ? JSON.stringify(value) : `{"${name}":${JSON.stringify(value)}}`);
  const read = yield* chatPartReading(bytes);
  if (!read.ok) return { ok: false, reason: withPath(read.reason, path) };
  const { promptBytes, textTokensMax, mediaParts, maxTokens, budgets } = read.value;
  // What was put around a field alone is not part of it.
  const frame = name === "" ? 0 : name.length + `{"":}`.length;
  const { textTokensMax: _, ...special } = specialFacts(read.value);
  return {
    ok: true,
    value: {
      jsonBytes: bytes.length - frame,
      textBytes: promptBytes - frame,
      textTokensMax: textTokensMax ?? promptBytes - frame,
      mediaParts,
      maxTokens,
      budgets,
      budgetField: path,
      special:
        special.unbounded === undefined ? special : { ...special, unbounded: special.unbounded.map(entryWithPath) },
    },
  };

  function entryWithPath(entry: UnreservableField): UnreservableField {
    return { ...entry, field: path(entry.field) };
  }
}

function withPath(reason: Reason, path: PartPath): Reason {
  if (reason.reason !== "invalid_request") return reason;
  const param = reason.param ?? null;
  const message = reason.message.replace(param ?? "the body", () => path(param));
  return { ...reason, message, param: path(param) };
}

/** The sizes of a plain text. */
export function sizeOf(text: string): TextSize {
  return atOnce(sizeReading(text, Infinity));
}

/**
 * The same, with a pause behind each `sliceChars` whose tokens are counted: everything else is a hundredth of that. JSON writes at most six
 * bytes for a byte of UTF-8, so only a large text is measured as JSON.
 */
export function* sizeReading(text: string, sliceChars: number): Sliced<TextSize> {
  const bytes = text.length > PROMPT_BYTES_MAX ? text.length : utf8Bytes(text);
  // Text with as many bytes as characters is ASCII, which normalising does not change.
  const growth = bytes === text.length ? 0 : normalisedGrowth(text);
  const mayNotFit = bytes * 6 > PROMPT_BYTES_MAX && bytes <= PROMPT_BYTES_MAX;
  const isLookedAt = bytes >= TEXT_LOOK_BYTES_MIN && bytes <= PROMPT_BYTES_MAX;
  return {
    textBytes: bytes + growth,
    textTokensMax: isLookedAt ? yield* countingTextTokens(text, growth, sliceChars) : bytes + growth,
    jsonBytes: mayNotFit ? utf8Bytes(JSON.stringify(text)) - 2 : bytes,
  };
}
