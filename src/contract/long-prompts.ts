/** The long prompts of one batch: each is measured in slices, and once, though a large body is read twice. */
import { TEXT_SLICE_CHARS } from "../limits.ts";
import type { Sliced } from "../text/bytes/slices.ts";
import type { CallSettings, FieldPath } from "./call-options.ts";
import { callOf, promptReading, type CallContent, type ParsedCall } from "./call.ts";
import type { Parsed } from "./errors.ts";

/** Whether a prompt takes milliseconds to measure. */
export function isLongPrompt(prompt: unknown): prompt is string {
  return typeof prompt === "string" && prompt.length > TEXT_SLICE_CHARS;
}

export class LongPrompts {
  /** What was measured, by the place of the call in its batch. */
  readonly #fields = new Map<number, CallContent["fields"]>();

  /** The call of a prompt, with no other content. `index`: its place in the batch. */
  *callOf(prompt: string, index: number, settings: CallSettings, path: FieldPath): Sliced<Parsed<ParsedCall>> {
    const known = this.#fields.get(index);
    if (known !== undefined) return callOf({ body: { prompt }, field: "prompt", fields: known }, settings, path);
    const content = yield* promptReading(prompt, path);
    if (!content.ok) return content;
    this.#fields.set(index, content.value.fields);
    return callOf(content.value, settings, path);
  }
}
