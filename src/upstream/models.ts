/** What an upstream itself lists as its models, for patterns whose names nobody has written down. */
import { z } from "zod";
import { MODELS_BYTES_MAX, NAME_CHARS_MAX } from "../limits.ts";
import type { Upstream } from "./config.ts";
import { matchesPattern } from "./pattern.ts";

/** The last second of the year 9999, the end of what timestamps can show. */
const CREATED_MAX = 253_402_300_799;

const list = z.object({ data: z.array(z.unknown()) });

/** A model that a run could ask for; a time that is none is unknown. */
const model = z.object({
  id: z
    .string()
    .min(1)
    .max(NAME_CHARS_MAX)
    .refine((id) => id.isWellFormed() && !/\p{Cc}/u.test(id)),
  created: z.number().min(0).max(CREATED_MAX).catch(0),
});

/** A model as listed; `created` in unix seconds, 0 where the upstream does not say. */
export type ListedModel = { id: string; created: number };

/** Where an upstream lists its models, with the headers to ask with; null for one that has no list. */
export function modelsRequest({
  kind,
  baseUrl,
  apiKey,
  headers,
}: Upstream): { url: string; headers: Record<string, string> } | null {
  if (kind === "simulated") return null;
  const key: Record<string, string> =
    kind === "anthropic"
      ? { "anthropic-version": "2023-06-01", ...(apiKey === null ? {} : { "x-api-key": apiKey }) }
      : apiKey === null
        ? {}
        : { authorization: `Bearer ${apiKey}` };
  const url = kind === "anthropic" ? `${baseUrl}/v1/models?limit=1000` : `${baseUrl}/models`;
  return { url, headers: { accept: "application/json", ...headers, ...key } };
}

/** The models of an upstream's answer that its patterns allow, without those that are none; none of what is no list. */
export function readModels(text: string, { models }: Upstream): ListedModel[] {
  if (text.length > MODELS_BYTES_MAX) return [];
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return [];
  }
  const read = list.safeParse(json);
  if (!read.success) return [];
  const listed = read.data.data.flatMap((entry) => model.safeParse(entry).data ?? []);
  const allowed = listed.filter(({ id }) => models.some((pattern) => matchesPattern(pattern, id)));
  return allowed.map(({ id, created }) => ({ id, created: Math.floor(created) }));
}

/** The names that a configuration writes out; patterns stand for models that only the upstream can list. */
export function plainNames({ models }: Upstream): string[] {
  return models.filter((name) => !name.includes("*"));
}
