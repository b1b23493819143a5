/** The models that an upstream itself lists, for patterns in the configuration. */
import * as z from "zod";
import { MODELS_BYTES_MAX, NAME_CHARS_MAX } from "../limits.ts";
import { hasModelPlace, withQuery } from "./config/address.ts";
import type { Upstream } from "./config/types.ts";
import { matchesPattern } from "./config/pattern.ts";
import { keyHeadersOf, kindOf } from "./kinds/table.ts";
import { withoutOwnSecrets } from "./redact.ts";

/** The last second of the year 9999, the end of what timestamps can show. */
const CREATED_MAX = 253_402_300_799;

const list = z.object({ data: z.array(z.unknown()) });

/** A model with a name that a request can carry; an invalid time counts as unknown. */
const model = z.object({
  id: z
    .string()
    .min(1)
    .max(NAME_CHARS_MAX)
    .refine((id) => id.isWellFormed() && !/\p{Cc}/u.test(id)),
  created: z.number().min(0).max(CREATED_MAX).catch(0),
});

/** A model as listed; `created` in unix seconds, 0 if the upstream does not name it. */
export type ListedModel = { id: string; created: number };

/** The request for an upstream's list of models; null for an upstream that has no list. */
export function modelsRequest(upstream: Upstream): { url: string; headers: Record<string, string> } | null {
  const { cassette, auth } = upstream;
  const kind = kindOf(upstream);
  if (kind.models === null || cassette?.mode === "replay") return null;
  // The providers with such keys list their models elsewhere, in a form of their own; so does Azure for its deployments.
  if ((auth !== undefined && auth.type !== "header") || hasModelPlace(upstream.baseUrl)) return null;
  const headers = { accept: "application/json", ...kind.headers, ...upstream.headers, ...keyHeadersOf(upstream) };
  return { url: withQuery(`${upstream.baseUrl}${kind.models}`, upstream.query ?? ""), headers };
}

/** The models of an upstream's answer that its patterns allow, without invalid entries; empty for an answer that is no list. */
export function readModels(text: string, upstream: Upstream): ListedModel[] {
  const { models } = upstream;
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
  return allowed.map(({ id, created }) => ({ id: withoutOwnSecrets(id, upstream), created: Math.floor(created) }));
}

/** The names that the configuration lists literally; the models behind a pattern only the upstream can list. */
export function plainNames({ models }: Upstream): string[] {
  return models.filter((name) => !name.includes("*"));
}
