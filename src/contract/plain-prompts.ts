/**
 * The short prompts of one batch. Tens of thousands of them cost by their number, not by their bytes, and most have one of a few lengths:
 * those of equal length have the same facts, which are one object and are made once.
 */
import type { CallBody, CallFacts } from "../call.ts";
import { PLAIN_PROMPT_CHARS_MAX } from "../limits.ts";
import type { ParsedCall } from "./call.ts";
import type { CallSettings } from "./call-options.ts";

/** Of the prompts that were read so far under the settings of their batch. */
export class PlainPrompts {
  readonly #options: CallSettings["body"] | null;
  /** By length in characters, which is that in bytes: each text is ASCII. */
  readonly #facts = new Map<number, CallFacts>();

  constructor({ body }: Pick<CallSettings, "body">) {
    this.#options = Object.keys(body).length === 0 ? null : body;
  }

  /** The call of a prompt, as it would be read; null = no prompt of its length is known, or its length does not tell its facts. */
  callOf(prompt: string): { body: CallBody; facts: CallFacts } | null {
    const facts = this.#facts.get(prompt.length);
    if (facts === undefined || !isPlain(prompt)) return null;
    return { body: this.#options === null ? { prompt } : { ...this.#options, prompt }, facts };
  }

  /** Keeps the facts of a call that was read, if they are those of all plain prompts of its length. */
  note(prompt: string, { facts, context, cache }: ParsedCall): void {
    // A call that refers to a stored text, or shares a beginning, has more than its body and these facts.
    if (context === undefined && cache === undefined && isPlain(prompt)) this.#facts.set(prompt.length, facts);
  }
}

/** Whether a text is short and ASCII without NUL: then its length is all that admission measures of it, and nothing is wrong with it. */
function isPlain(text: string): boolean {
  if (text.length > PLAIN_PROMPT_CHARS_MAX) return false;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === 0 || unit >= 0x80) return false;
  }
  return true;
}
