/**
 * What the provider's model says to programs in which a model writes code: first code that has a sub-model count the words
 * of each part of the text, all parts at once, then code that submits the sum.
 */

import { inflateSync } from "node:zlib";
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

/** For rlm with `llm_batch`, whose sub-models count the letters of what they are asked by a tool. */
export const RLM_TOOLS_MIND = writer(
  [
    '```repl\ncounts = llm_batch(context.split("\\n\\n"), tools=["letters"])\nprint(counts)\n```',
    '```repl\nanswer["content"] = sum(int(count) for count in counts)\nanswer["ready"] = True\n```',
  ],
  afterOwn,
);

const dspyStep = (reasoning: string, code: string): string =>
  `[[ ## reasoning ## ]]\n${reasoning}\n\n[[ ## code ## ]]\n\`\`\`python\n${code}\n\`\`\`\n\n[[ ## completed ## ]]`;

const iteration = (messages: Said): number =>
  Number(/\[\[ ## iteration ## \]\]\s*(\d+)/.exec(messages.at(-1)?.text ?? "")?.[1] ?? 1) - 1;

const dspyImages = writer(
  [
    dspyStep("I look at each.", 'colours = look(question="Which colour?")\nprint(colours)'),
    dspyStep("I know them.", 'SUBMIT(" ".join(colours))'),
  ],
  iteration,
);

/** For dspy.RLM with images: it knows a picture by its bytes, and none that it is not sent. */
export const DSPY_IMAGES_MIND: Mind = (messages) => {
  const images = messages.flatMap((each) => each.images);
  return images.length === 0
    ? dspyImages(messages)
    : `[[ ## answer ## ]]\n${colourOf(images)}\n\n[[ ## completed ## ]]`;
};

/** The colour of the first pixel of the last picture, a PNG without filters. */
function colourOf(images: readonly string[]): string {
  const file = Buffer.from(images.at(-1)?.split(",")[1] ?? "", "base64");
  const data = file.indexOf("IDAT");
  const [, red = 0, green = 0, blue = 0] = inflateSync(file.subarray(data + 4, data + 4 + file.readUInt32BE(data - 4)));
  return ["red", "green", "blue"][[red, green, blue].indexOf(255)] ?? "no colour";
}

/** For dspy.RLM: its adapter's fields, and the number of the step in each prompt. */
export const DSPY_MIND = writer(
  [
    dspyStep("I count each part.", `counts = llm_query_batched(${PROMPTS})\nprint(counts)`),
    dspyStep("I add the counts.", "SUBMIT(sum(int(count) for count in counts))"),
  ],
  iteration,
);

/** For the program that verifiers runs, which splits the text itself: it adds the numbers that it is told. */
export const VERIFIERS_MIND: Mind = (messages) => {
  const last = messages.at(-1)?.text ?? "";
  if (last.startsWith(PART)) return String(wordsIn(last.slice(PART.length)));
  return String([...last.matchAll(/\d+/g)].reduce((sum, [count]) => sum + Number(count), 0));
};
