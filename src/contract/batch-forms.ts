/**
 * The forms of a batch, for the OpenAPI document: which fields say what its calls are, and which of them come together. The parser
 * checks the same, because it can name the path.
 */
import { CHUNK_PLACE } from "../limits.ts";
import { ABSENT, exactlyOneOf } from "./fields.ts";

/** Fields that say what the calls of a batch are. */
const CONTENTS = ["prompts", "items", "over", "prompt", "messages", "agents", "n"] as const;
type Content = (typeof CONTENTS)[number];

/** A null counts as missing in the bodies of other systems. */
const NULL_ONLY: { type: "null" } = { type: "null" };
const A_LIST: { type: "array" } = { type: "array" };

/** A body with these contents and no others. */
function only(required: readonly Content[]) {
  return { required, properties: othersAre(ABSENT, required) };
}

function othersAre<Schema>(schema: Schema, required: readonly Content[]): Record<string, Schema> {
  return Object.fromEntries(CONTENTS.filter((name) => !required.includes(name)).map((name) => [name, schema]));
}

/** The prompt of a batch over a context has a place for the chunk; its calls refer to no other context. */
const OVER = only(["over", "prompt"]);
const CHUNK_PATTERN = { pattern: CHUNK_PLACE.replace(/[{}]/g, "\\$&") };

/** The body of `/batch` has exactly one of these forms. */
export const ONE_FORM_OF_BATCH = exactlyOneOf(
  only(["prompts"]),
  only(["items"]),
  { ...OVER, properties: { ...OVER.properties, prompt: CHUNK_PATTERN, context: ABSENT } },
  only(["agents", "prompt"]),
  only(["agents", "messages"]),
  only(["n", "prompt"]),
  only(["n", "messages"]),
);

/** The body of `/llm_query_batched` and its like has exactly one of these. */
export const ONE_FORM_OF_LIST = exactlyOneOf(
  { required: ["prompts"], properties: { ...othersAre(NULL_ONLY, ["prompts"]), prompts: A_LIST } },
  { required: ["items"], properties: { ...othersAre(NULL_ONLY, ["items"]), items: A_LIST } },
);
