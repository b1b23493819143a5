/** Upstreams whose calls programs take from the run and answer: nothing is sent anywhere. Workers get chat completions. */
import * as z from "zod";
import { commonFields, commonOf, pricesOf } from "../config/fields.ts";
import { wrongIssue, type Entry, type ParsedUpstreams } from "../config/parsed.ts";
import type { Upstream } from "../config/types.ts";
import { WRITTEN_UNASKED } from "./cache-writes.ts";
import type { Kind } from "./kind.ts";
import { openai } from "./openai/kind.ts";
import { atFirstUse } from "../../at-first-use.ts";

const schema = atFirstUse(() => z.strictObject({ kind: z.literal("pull"), ...commonFields() }));

export const pull: Kind = {
  ...openai,
  parse,
  sends: "pull",
  endpoints: {},
  otherEndpoints: (name) => `${name} is served by pull workers; use /query or /batch`,
  models: null,
  promptCache: () => "none",
  batches: null,
  isRecordable: false,
};

/** Workers cost the gateway nothing, unless a price says what they cost their operator. They answer with JSON. */
function parse({ name, fields: entry }: Entry): ParsedUpstreams {
  const parsed = schema().safeParse(entry);
  if (!parsed.success) return wrongIssue(name, parsed.error);
  const fields = parsed.data;
  const upstream: Upstream = {
    name,
    kind: "pull",
    baseUrl: "",
    apiKey: null,
    headers: {},
    streamUsage: "auto",
    ...commonOf(fields, { models: ["*"], bounds: {} }),
    aggregate: "json",
    capField: "max_tokens",
    prices: pricesOf(fields.prices ?? { "*": { input: 0, output: 0 } }, WRITTEN_UNASKED),
  };
  return { ok: true, upstreams: [upstream] };
}
