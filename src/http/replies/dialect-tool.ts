/** The answer to `llm_batch` of verifiers' RLMEnv: a list of texts, in which a prompt that was not sent has its error. */
import type { GroupView, SlotView } from "../../objects/methods/groups.ts";
import { toWire } from "../../errors.ts";
import { ANSWER_NOTES_CHARS_MAX, RESULT_PAGES_AHEAD } from "../../limits.ts";
import { readAhead } from "./read-ahead.ts";
import { slotError, slotResult } from "./slot.ts";
import { usageOf } from "./usage.ts";

export type LlmBatchAnswer = {
  /** Prompts in the list, sent or not. */
  count: number;
  /** The place in the list of each slot of the group. */
  indexes: readonly number[];
  /** Null if no prompt was sent. */
  group: Pick<GroupView, "usage"> | null;
  slotsFrom: (index: number) => Promise<SlotView[]>;
};

/** Yields the answer's text, piece by piece. The slots are read once more for the errors if those are too long to keep. */
export async function* llmBatchJson(answer: LlmBatchAnswer): AsyncGenerator<string> {
  let errors: string[] | null = [];
  let errorChars = 0;
  yield `{"result":[`;
  for await (const entries of entriesOf(answer)) {
    yield textOf(entries, ({ result }) => result);
    const text = textOf(entries, ({ error }) => error);
    errorChars += text.length;
    if (errorChars <= ANSWER_NOTES_CHARS_MAX) errors?.push(text);
    else errors = null;
  }
  yield `],"errors":[`;
  if (errors !== null) yield errors.join("");
  else for await (const entries of entriesOf(answer)) yield textOf(entries, ({ error }) => error);
  const usage = usageOf(answer.group?.usage ?? { promptTokens: 0, completionTokens: 0, costNanoUsd: 0 });
  yield `],"usage":${JSON.stringify(usage)}}`;
}

/** What the lists of the answer have at one place. */
type Entry = { place: number; result: unknown; error: unknown };

/** The entries of all prompts in order, a page of slots at a time. */
function entriesOf(answer: LlmBatchAnswer): AsyncGenerator<Entry[]> {
  return readAhead(pagesOf(answer), RESULT_PAGES_AHEAD);
}

async function* pagesOf({ count, indexes, slotsFrom }: LlmBatchAnswer): AsyncGenerator<Entry[]> {
  let next = 0;
  for (let from = 0; from < indexes.length;) {
    const slots = await slotsFrom(from);
    if (slots.length === 0) throw new Error(`a group of ${indexes.length} slots ends at slot ${from}`);
    from += slots.length;
    const entries: Entry[] = [];
    for (const slot of slots) {
      const place = indexes[slot.index] ?? 0;
      while (next < place) entries.push(unsent(next++));
      const error = slotError(slot);
      entries.push({ place, result: slotResult(slot, error, "verifiers"), error });
      next = place + 1;
    }
    yield entries;
  }
  const rest: Entry[] = [];
  while (next < count) rest.push(unsent(next++));
  yield rest;
}

/** The elements of a page, after those of the page before. */
function textOf(entries: readonly Entry[], show: (entry: Entry) => unknown): string {
  return entries.map((entry) => `${entry.place === 0 ? "" : ","}${JSON.stringify(show(entry))}`).join("");
}

/** The entry of a prompt that was not sent. */
function unsent(place: number): Entry {
  const error = notAText(place);
  return { place, result: `Error in sub-LLM call: ${error.message}`, error };
}

function notAText(index: number) {
  const message = `llm_batch prompt at index ${index} must be a string.`;
  const { error } = toWire({ reason: "invalid_request", message, param: `prompts[${index}]` });
  return { ...error, attempts: 0 };
}
