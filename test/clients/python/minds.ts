/**
 * What the provider's model says to programs in which a model writes code: first code that has a sub-model count the words
 * of each part of the text, all parts at once, then code that submits the sum.
 */

import type { Mind } from "../../support/provider.ts";

type Said = Parameters<Mind>[0];

/** How the prompts of the written code begin: a request whose last message begins so comes from that code. */
const PART = "Count words:";

const wordsIn = (text: string): number => text.split(/\s+/).filter((word) => word !== "").length;

/** A model that writes one step of code after the other, and counts the words of a part. */
function writer(steps: readonly string[], stepOf: (messages: Said) => number): Mind {
  return (messages) => {
    const last = messages.at(-1)?.text ?? "";
    if (last.startsWith(PART)) return String(wordsIn(last.slice(PART.length)));
    return steps[Math.min(stepOf(messages), steps.length - 1)] ?? "";
  };
}

/** The step after those that the model's own earlier messages were. */
const afterOwn = (messages: Said): number => messages.filter(({ role }) => role === "assistant").length;

const PROMPTS = `[f"${PART} {part}" for part in context.split("\\n\\n")]`;

/** For rlm: fences called `repl`, and a dict for the answer. */
export const RLM_MIND = writer(
  [
    `\`\`\`repl\ncounts = llm_query_batched(${PROMPTS})\nprint(counts)\n\`\`\``,
    `\`\`\`repl\nanswer["content"] = sum(int(count) for count in counts)\nanswer["ready"] = True\n\`\`\``,
  ],
  afterOwn,
);

/** For minRLM: pairs of a task and a text. */
export const MINRLM_MIND = writer(
  [
    `\`\`\`python\nparts = input_0.split("\\n\\n")\ncounts = sub_llm_batch([(f"${PART} {part}", "") for part in parts])\nprint(counts)\n\`\`\``,
    "```python\nFINAL(sum(int(count) for count in counts))\n```",
  ],
  afterOwn,
);

const dspyStep = (reasoning: string, code: string): string =>
  `[[ ## reasoning ## ]]\n${reasoning}\n\n[[ ## code ## ]]\n\`\`\`python\n${code}\n\`\`\`\n\n[[ ## completed ## ]]`;

/** For dspy.RLM: its adapter's fields, and the number of the step in each prompt. */
export const DSPY_MIND = writer(
  [
    dspyStep("I count each part.", `counts = llm_query_batched(${PROMPTS})\nprint(counts)`),
    dspyStep("I add the counts.", "SUBMIT(sum(int(count) for count in counts))"),
  ],
  (messages) => Number(/\[\[ ## iteration ## \]\]\s*(\d+)/.exec(messages.at(-1)?.text ?? "")?.[1] ?? 1) - 1,
);

/** For the program that verifiers runs, which splits the text itself: it adds the numbers that it is told. */
export const VERIFIERS_MIND: Mind = (messages) => {
  const last = messages.at(-1)?.text ?? "";
  if (last.startsWith(PART)) return String(wordsIn(last.slice(PART.length)));
  return String([...last.matchAll(/\d+/g)].reduce((sum, [count]) => sum + Number(count), 0));
};
