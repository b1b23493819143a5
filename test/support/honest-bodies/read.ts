/**
 * Request bodies as programs in the field send them, one JSON line each, a file for every source. A limit must let all of
 * them through. `extras.jsonl` is the opposite: bodies that buy what no reservation covers, each with the `field` that
 * the refusal must name. The files named after JavaScript SDKs are what these send (capture.ts); the others follow the
 * documentation of the program or server that names the file.
 */
import { readdirSync, readFileSync } from "node:fs";
import { z } from "zod";

/** The route of each family. */
export const ROUTES = {
  chat: "/v1/chat/completions",
  completions: "/v1/completions",
  responses: "/v1/responses",
  messages: "/v1/messages",
  embeddings: "/v1/embeddings",
  query: "/query",
  batch: "/batch",
  llm_query: "/llm_query",
  llm_query_batch: "/llm_query_batch",
  llm_query_batched: "/llm_query_batched",
  rlm_query: "/rlm_query",
  rlm_query_batched: "/rlm_query_batched",
} as const;
export type Family = keyof typeof ROUTES;

const line = z.strictObject({
  name: z.string(),
  family: z.custom<Family>((value) => typeof value === "string" && Object.hasOwn(ROUTES, value)),
  field: z.string().optional(),
  body: z.record(z.string(), z.json()),
});
export type RecordedBody = z.infer<typeof line> & { source: string };

const EXTRAS = "extras";

/** All honest bodies, in the order of their files' names. */
export function honestBodies(): RecordedBody[] {
  const files = readdirSync(new URL(".", import.meta.url)).filter((file) => file.endsWith(".jsonl"));
  return files
    .map((file) => file.slice(0, -".jsonl".length))
    .filter((source) => source !== EXTRAS)
    .sort()
    .flatMap(bodiesOf);
}

/** Bodies that request what a provider bills beyond the tokens of the call. */
export function extraBodies(): (RecordedBody & { field: string })[] {
  return bodiesOf(EXTRAS).map(({ field, ...rest }) => {
    if (field === undefined) throw new Error(`"${rest.name}" of ${EXTRAS}.jsonl does not say which field is refused`);
    return { ...rest, field };
  });
}

function bodiesOf(source: string): RecordedBody[] {
  const text = readFileSync(new URL(`${source}.jsonl`, import.meta.url), "utf8");
  return text
    .trimEnd()
    .split("\n")
    .map((json) => ({ source, ...line.parse(JSON.parse(json)) }));
}
