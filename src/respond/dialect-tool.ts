/** The answer to `llm_batch` of verifiers' RLMEnv: a list of texts, in which a prompt that was not sent has its error. */
import type { GroupView, SlotView } from "../run-api/groups.ts";
import { toWire } from "../errors.ts";
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

/** Yields the answer's text, piece by piece. */
export async function* llmBatchJson({ count, indexes, group, slotsFrom }: LlmBatchAnswer): AsyncGenerator<string> {
  const errors: string[] = [];
  const element = (result: unknown, error: unknown): string => {
    errors.push(JSON.stringify(error));
    return `${errors.length === 1 ? "" : ","}${JSON.stringify(result)}`;
  };
  const unsentUpTo = (place: number): string => {
    let text = "";
    for (let index = errors.length; index < place; index += 1) {
      const error = notAText(index);
      text += element(`Error in sub-LLM call: ${error.message}`, error);
    }
    return text;
  };
  yield `{"result":[`;
  for (let from = 0; from < indexes.length;) {
    const slots = await slotsFrom(from);
    if (slots.length === 0) throw new Error(`a group of ${indexes.length} slots ends at slot ${from}`);
    from += slots.length;
    const texts = slots.map((slot) => {
      const error = slotError(slot);
      return unsentUpTo(indexes[slot.index] ?? 0) + element(slotResult(slot, error, "verifiers"), error);
    });
    yield texts.join("");
  }
  yield unsentUpTo(count);
  const usage = usageOf(group?.usage ?? { promptTokens: 0, completionTokens: 0, costNanoUsd: 0 });
  yield `],"errors":[${errors.join(",")}],"usage":${JSON.stringify(usage)}}`;
}

function notAText(index: number) {
  const message = `llm_batch prompt at index ${index} must be a string.`;
  const { error } = toWire({ reason: "invalid_request", message, param: `prompts[${index}]` });
  return { ...error, attempts: 0 };
}
