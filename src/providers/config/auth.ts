/** How an upstream's key is shown to it, where that is not as its kind does: `auth` in the configuration. */
import * as z from "zod";
import { NAME_CHARS_MAX } from "../../limits.ts";
import { isRecord } from "../../text/json/record.ts";
import type { Resolved } from "./credentials.ts";
import type { Auth, Upstream } from "./types.ts";
import { atFirstUse } from "../../at-first-use.ts";

const text = (error: string, pattern: RegExp) =>
  z.string({ error }).max(NAME_CHARS_MAX, { error }).regex(pattern, { error });

const headerName = text("must be the name of a header", /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/);
const scheme = text("must be one word, such as Bearer, or empty", /^[!-~]*$/);
const scope = text("must be a scope, which is a URL", /^https:\/\/[!-~]+$/);
const place = text("must be a name such as us-east-1", /^[a-z0-9-]+$/);

const authError = { error: 'must be an object with type "header", "google" or "aws"' };

/** The field `auth`. */
export const authField = atFirstUse(() =>
  z
    .discriminatedUnion(
      "type",
      [
        z.strictObject({
          type: z.literal("header"),
          header: headerName.default("authorization"),
          scheme: scheme.default(""),
        }),
        z.strictObject({
          type: z.literal("google"),
          scope: scope.default("https://www.googleapis.com/auth/cloud-platform"),
        }),
        z.strictObject({ type: z.literal("aws"), region: place, service: place.default("bedrock") }),
      ],
      authError,
    )
    .optional(),
);

/** The headers that carry the key of an upstream, as `auth` says or else as its kind does. Never log or return them. */
export function authHeaders(
  { apiKey, auth }: Pick<Upstream, "apiKey" | "auth">,
  kindHeaders: (key: string) => Record<string, string>,
): Record<string, string> {
  if (apiKey === null) return {};
  if (auth === undefined) return kindHeaders(apiKey);
  // A service account's JSON and a signing key are never sent: src/providers/credentials makes of them what is.
  if (auth.type !== "header") return {};
  return { [auth.header.toLowerCase()]: auth.scheme === "" ? apiKey : `${auth.scheme} ${apiKey}` };
}

/** The names of the headers that the gateway sets itself if there is a key. */
export function authHeaderNames(auth: Auth | undefined, kindNames: readonly string[]): readonly string[] {
  if (auth === undefined) return kindNames;
  return auth.type === "header" ? [auth.header.toLowerCase()] : ["authorization"];
}

/** Whether a key has what `auth` needs of it. The message never quotes it. */
export function checkedKey(auth: Auth | undefined, key: string | null): Resolved<null> {
  const wrong = (message: string) => ({ ok: false as const, field: [], message });
  if (auth === undefined) return { ok: true, value: null };
  if (key === null) return wrong("is needed by auth");
  if (auth.type === "google" && serviceAccountOf(key) === null) {
    return wrong(
      "must be the JSON of a service account's key, with client_email and private_key, because auth is google",
    );
  }
  if (auth.type === "aws" && signingKeyOf(key) === null) {
    return wrong("must be ACCESS_KEY_ID:SECRET_ACCESS_KEY, with :SESSION_TOKEN if there is one, because auth is aws");
  }
  return { ok: true, value: null };
}

/** What a service account's key says (cloud.google.com/iam/docs/keys-create-delete). */
export type ServiceAccount = { email: string; privateKey: string; keyId: string | null; tokenUrl: string };

const GOOGLE_TOKEN_URL = "https://oauth2.googleapis.com/token";

/** The service account in the JSON of its key; null = it is none. */
export function serviceAccountOf(key: string): ServiceAccount | null {
  let json: unknown;
  try {
    json = JSON.parse(key);
  } catch {
    return null;
  }
  if (!isRecord(json)) return null;
  const { client_email: email, private_key: privateKey, private_key_id: keyId, token_uri: tokenUri } = json;
  if (typeof email !== "string" || typeof privateKey !== "string" || !privateKey.includes("PRIVATE KEY")) return null;
  const tokenUrl = typeof tokenUri === "string" ? tokenUri : GOOGLE_TOKEN_URL;
  if (!URL.canParse(tokenUrl)) return null;
  return { email, privateKey, keyId: typeof keyId === "string" ? keyId : null, tokenUrl };
}

/** What signs requests to AWS. */
export type SigningKey = { accessKeyId: string; secretAccessKey: string; sessionToken?: string };

/** The parts of a signing key; null = it has other parts. Neither part contains a colon. */
export function signingKeyOf(key: string): SigningKey | null {
  const [accessKeyId = "", secretAccessKey = "", sessionToken, ...rest] = key.split(":");
  if (accessKeyId === "" || secretAccessKey === "" || sessionToken === "" || rest.length > 0) return null;
  return { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) };
}

/** The texts of a key that must not be shown: all of it, and each part that is a secret by itself. */
export function secretParts(key: string, auth: Auth | undefined): readonly string[] {
  if (auth?.type === "google") return [key, serviceAccountOf(key)?.privateKey ?? key];
  if (auth?.type === "aws") return [key, ...key.split(":")];
  return [key];
}
