/** Requests that are signed with AWS Signature Version 4, by a library. */
import { AwsV4Signer } from "aws4fetch";
import { signingKeyOf } from "../config/auth.ts";
import type { Upstream } from "../config/types.ts";

type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** A fetch that signs what it sends, if the upstream's key is one that signs; else the same fetch. */
export function signedFetch({ auth, apiKey }: Pick<Upstream, "auth" | "apiKey">, fetch: Fetch): Fetch {
  const key = auth?.type === "aws" && apiKey !== null ? signingKeyOf(apiKey) : null;
  if (auth?.type !== "aws" || key === null) return fetch;
  const { region, service } = auth;
  return async (url, init) => {
    // The signature covers the whole body, so it cannot be sent while it is read.
    const body = new Uint8Array(await new Response(init.body ?? null).arrayBuffer());
    const method = init.method ?? "GET";
    const headers = new Headers(init.headers);
    const signer = new AwsV4Signer({ ...key, method, url, headers, body, region, service });
    const signed = await signer.sign();
    const sent: RequestInit = { ...init, headers: signed.headers };
    if (method !== "GET") sent.body = body;
    return await fetch(url, sent);
  };
}
