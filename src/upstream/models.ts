/** What an upstream itself lists as its models, for patterns whose names nobody has written down. */
import { z } from "zod";
import { MODELS_BYTES_MAX, NAME_CHARS_MAX } from "../limits.ts";
import type { Upstream } from "./config.ts";
import { matchesPattern } from "./pattern.ts";

const list = z.object({
  data: z.array(z.object({ id: z.string().min(1).max(NAME_CHARS_MAX), created: z.number().optional() })),
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

/** The models of an upstream's answer that its patterns allow; none of what is not such a list. */
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
  const allowed = read.data.data.filter(({ id }) => models.some((pattern) => matchesPattern(pattern, id)));
  return allowed.map(({ id, created }) => ({ id, created: Math.max(0, Math.floor(created ?? 0)) }));
}

/** The names that a configuration writes out; patterns stand for models that only the upstream can list. */
export function plainNames({ models }: Upstream): string[] {
  return models.filter((name) => !name.includes("*"));
}
