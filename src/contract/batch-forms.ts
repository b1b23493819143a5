/**
 * The forms of a batch, for the OpenAPI document: which fields say what its calls are, and which of them come together. The parser
 * checks the same, because it can name the path.
 */
import { CHUNK_PLACE } from "../limits.ts";
import { ABSENT, exactlyOneOf } from "./fields.ts";

/** The prompt of a batch over a context has a place for the chunk; its calls refer to no other context. */
const OVER = { prompt: { pattern: CHUNK_PLACE.replace(/[{}]/g, "\\$&") }, context: ABSENT };

/** The body of `/batch` has exactly one of these forms. */
export const ONE_FORM_OF_BATCH = exactlyOneOf([
  ["prompts"],
  ["items"],
  { required: ["over", "prompt"], properties: OVER },
  ["agents", "prompt"],
  ["agents", "messages"],
  ["n", "prompt"],
  ["n", "messages"],
]);

/** A null counts as missing in the bodies of other systems. */
const NULL_ONLY: { type: "null" } = { type: "null" };
const A_LIST: { type: "array" } = { type: "array" };
/** What makes several calls of one. */
const NONE_OF_ONE = { over: NULL_ONLY, prompt: NULL_ONLY, messages: NULL_ONLY, agents: NULL_ONLY, n: NULL_ONLY };

/** The body of `/llm_query_batched` and its like has exactly one of these. */
export const ONE_FORM_OF_LIST = exactlyOneOf(
  [
    { required: ["prompts"], properties: { ...NONE_OF_ONE, prompts: A_LIST } },
    { required: ["items"], properties: { ...NONE_OF_ONE, items: A_LIST } },
  ],
  NULL_ONLY,
);
