/** Shared contexts: texts that a run stores once and many calls refer to. Data only. */
import type { ContextPlace } from "../call.ts";

/** A stored context, as its run lists it. */
export type ContextRecord = {
  /** `ctx_` and the first 32 hexadecimal digits of the SHA-256 of the text: the same text has the same id. */
  id: string;
  name: string | null;
  /** Unicode code points. */
  chars: number;
  /** Bytes of the text in UTF-8. */
  bytes: number;
  /** Upper bound of its tokens. */
  tokensMax: number;
  createdAtMs: number;
  /** The name of its object in R2; null = its run's file object has the text. */
  object: string | null;
};

/** A record with what ranges of its text are measured by: see text-index.ts. */
export type IndexedContext = { record: ContextRecord; index: Uint8Array };

/** How a text is cut into chunks. */
export type Split = { by: "chars" | "lines" | "paragraphs" | "markdown"; size: number; overlap: number };

/** The text that a call refers to, as its request names it. Without a range it is all of the context. */
export type ContextReference = {
  id: string;
  /** In code points; `to` is exclusive. */
  range?: { from: number; to: number | null };
  /** The number of a chunk, and how the text is cut. */
  chunk?: { number: number; split: Split };
  place: ContextPlace;
};
