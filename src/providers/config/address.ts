/** The URLs of an upstream: its base URL, which may have the model in its path, and its query parameters. */
import * as z from "zod";
import { NAME_CHARS_MAX, QUERY_PARAMETERS_MAX } from "../../limits.ts";
import type { Upstream } from "./types.ts";
import { atFirstUse } from "../../at-first-use.ts";

/** Stands in a base URL for the model of the request, as in Azure's `/openai/deployments/{model}`. */
const MODEL = "{model}";
const MODEL_ENCODED = "%7Bmodel%7D";

const queryError = `must be an object of at most ${QUERY_PARAMETERS_MAX} texts of up to ${NAME_CHARS_MAX} characters`;
const secretError = "must not be a secret: use api_key with auth, or headers";
const nameOrValue = z.string({ error: queryError }).max(NAME_CHARS_MAX, { error: queryError });

/** The field `query`: parameters of every request, such as `api-version`. Addresses are shown in logs, so no secret may be in one. */
export const queryField = atFirstUse(() =>
  z
    .record(
      nameOrValue.min(1, { error: queryError }),
      nameOrValue.refine((value) => !value.startsWith("secret:"), { error: secretError }),
      { error: queryError },
    )
    .refine((query) => Object.keys(query).length <= QUERY_PARAMETERS_MAX, { error: queryError })
    .default({}),
);

/** A base URL as it is stored: without a slash at its end. */
export function storedBaseUrl(url: string): string {
  return new URL(url).href.replace(/\/+$/, "").replaceAll(MODEL_ENCODED, MODEL);
}

/** Whether a base URL has a place for the model. What needs an address without a model does not work there. */
export function hasModelPlace(baseUrl: string): boolean {
  return baseUrl.includes(MODEL);
}

/**
 * Whether batches can be made at an upstream: their API lies beside the endpoints, so an address with the model in its path has none;
 * nor has one that Google or AWS protects.
 */
export function hasBatches({
  base_url: baseUrl,
  auth,
}: {
  base_url: string;
  auth?: { type: string } | undefined;
}): boolean {
  return !hasModelPlace(storedBaseUrl(baseUrl)) && (auth === undefined || auth.type === "header");
}

/** What is wrong with the places for the model in a configured base URL; null = nothing. A client's text never names a host. */
export function modelPlaceFault(url: URL): string | null {
  const before = `${url.protocol}${url.host}`;
  if (/\{|%7b/i.test(before)) return `must have ${MODEL} in its path only`;
  const rest = url.pathname.replaceAll(MODEL_ENCODED, "");
  return /%7b|%7d/i.test(rest) ? `must have no other braces than those of ${MODEL}` : null;
}

/**
 * The URL of a path below an upstream's base URL, with its query parameters. Null for a model that cannot stand in a path: it
 * would lead to another one.
 */
export function addressOf(
  { baseUrl, query }: Pick<Upstream, "baseUrl" | "query">,
  path: string,
  model: string,
): string | null {
  if (!hasModelPlace(baseUrl)) return withQuery(`${baseUrl}${path}`, query ?? "");
  if (model === "." || model === ".." || !model.isWellFormed()) return null;
  return withQuery(`${baseUrl.replaceAll(MODEL, () => encodeURIComponent(model))}${path}`, query ?? "");
}

/** A URL with further parameters; `query` is without its `?`. */
export function withQuery(url: string, query: string): string {
  if (query === "") return url;
  return `${url}${url.includes("?") ? "&" : "?"}${query}`;
}
