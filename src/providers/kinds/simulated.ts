/** The built-in upstream: the gateway answers itself, in the form of every endpoint. */
import * as z from "zod";
import { commonFields, commonOf, pricesOf } from "../config/fields.ts";
import { wrongIssue, type Entry, type ParsedUpstreams } from "../config/parsed.ts";
import type { Upstream } from "../config/types.ts";
import { SIMULATED_MODEL_PATTERNS } from "../simulated/model.ts";
import { WRITTEN_UNASKED } from "./cache-writes.ts";
import type { Kind } from "./kind.ts";
import { openai } from "./openai/kind.ts";
import { atFirstUse } from "../../at-first-use.ts";

const schema = atFirstUse(() => z.strictObject({ kind: z.literal("simulated"), ...commonFields() }));

export const simulated: Kind = {
  ...openai,
  batches: null,
  parse,
  sends: "simulated",
  protocol: null,
  endpoints: { ...openai.endpoints, messages: "/v1/messages" },
  models: null,
  promptCache: () => "none",
  countTokens: (bodyBytes) => Math.ceil(bodyBytes / 4),
  // Its responses have `store: false`, whatever was requested.
  storesNoResponses: "the simulated upstream stores no responses",
  // A model is shown without its parameters.
  showsPattern: (pattern) => !pattern.endsWith("?*"),
};

function parse({ name, fields: entry }: Entry): ParsedUpstreams {
  const parsed = schema().safeParse(entry);
  if (!parsed.success) return wrongIssue(name, parsed.error);
  const fields = parsed.data;
  const upstream: Upstream = {
    name,
    kind: "simulated",
    baseUrl: "",
    apiKey: null,
    headers: {},
    streamUsage: "auto",
    ...commonOf(fields, { models: SIMULATED_MODEL_PATTERNS, bounds: {} }),
    capField: "max_tokens",
    prices: pricesOf(fields.prices ?? { "*": { input: 0.15, output: 0.6 } }, WRITTEN_UNASKED),
  };
  return { ok: true, upstreams: [upstream] };
}
