import { describe, expect, it } from "vitest";
import { addressOf, withQuery } from "../../../../src/providers/config/address.ts";
import type { Upstream } from "../../../../src/providers/config/types.ts";
import { keyHeadersOf } from "../../../../src/providers/kinds/table.ts";
import { modelsRequest } from "../../../../src/providers/models.ts";
import { parseUpstreams } from "../../../../src/providers/upstreams.ts";

const DEPLOYMENTS = "https://r.test/openai/deployments/{model}";
const ACCOUNT = '{"client_email":"a@b.c",\n"private_key":"-----BEGIN PRIVATE KEY-----"}';
const VARS = { KEY: "sk-0123456789", ACCOUNT, AWS: "AKIA01234567:secret/0123456789" };

function parsed(fields: Record<string, unknown>) {
  return parseUpstreams({ up: { kind: "openai", base_url: "https://r.test/v1", ...fields } }, VARS);
}

function upstreamOf(fields: Record<string, unknown>): Upstream {
  const read = parsed(fields);
  const upstream = read.ok ? read.upstreams[0] : undefined;
  if (upstream === undefined) throw new Error(JSON.stringify(read));
  return upstream;
}

describe("the address of a request", () => {
  it("has the model in its path, encoded, and the parameters behind it", () => {
    const upstream = upstreamOf({ base_url: DEPLOYMENTS, query: { "api-version": "2024-10-21", x: "a b&c" } });
    expect(addressOf(upstream, "/chat/completions", "my model/../x?y#z")).toBe(
      "https://r.test/openai/deployments/my%20model%2F..%2Fx%3Fy%23z/chat/completions?api-version=2024-10-21&x=a+b%26c",
    );
  });

  it.each([".", ".."])("is none for the model %s, which would lead to another path", (model) => {
    expect(addressOf(upstreamOf({ base_url: DEPLOYMENTS }), "/chat/completions", model)).toBeNull();
  });

  it("keeps a text with $& in the name of a model", () => {
    expect(addressOf(upstreamOf({ base_url: DEPLOYMENTS }), "", "a$&b")).toBe(
      "https://r.test/openai/deployments/a%24%26b",
    );
  });

  it("takes further parameters behind those that it has", () => {
    expect(withQuery("https://r.test/a?b=1", "beta=true")).toBe("https://r.test/a?b=1&beta=true");
    expect(withQuery("https://r.test/a", "beta=true")).toBe("https://r.test/a?beta=true");
  });

  it("without a model is none: no list of models, and no Batch API", () => {
    const upstream = upstreamOf({ base_url: DEPLOYMENTS });
    expect(modelsRequest(upstream)).toBeNull();
    expect(upstream.batch).toBeUndefined();
    expect(modelsRequest(upstreamOf({ query: { a: "1" } }))?.url).toBe("https://r.test/v1/models?a=1");
  });

  it.each([
    [{ base_url: "https://{model}.test/v1" }, "base_url", "in its path only"],
    [{ base_url: "https://r.test/{deployment}/v1" }, "base_url", "no other braces"],
    [{ query: { "api-version": "secret:KEY" } }, "query.api-version", "must not be a secret"],
    [{ query: Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`p${at}`, ""])) }, "query", "at most 16 texts"],
  ])("is refused as %j", (fields, path, message) => {
    const read = parsed(fields);
    expect(read).toMatchObject({ ok: false, path: `UPSTREAMS.up.${path}` });
    expect(JSON.stringify(read)).toContain(message);
  });
});

describe("auth", () => {
  it("shows a key in the header and after the word that it names", () => {
    const key = { api_key: "secret:KEY" };
    expect(keyHeadersOf(upstreamOf(key))).toEqual({ authorization: "Bearer sk-0123456789" });
    expect(keyHeadersOf(upstreamOf({ ...key, auth: { type: "header", header: "API-Key" } }))).toEqual({
      "api-key": VARS.KEY,
    });
    expect(keyHeadersOf(upstreamOf({ ...key, auth: { type: "header", scheme: "Key" } }))).toEqual({
      authorization: "Key sk-0123456789",
    });
  });

  it("never shows a service account or a signing key itself", () => {
    expect(keyHeadersOf(upstreamOf({ api_key: "secret:ACCOUNT", auth: { type: "google" } }))).toEqual({});
    expect(keyHeadersOf(upstreamOf({ api_key: "secret:AWS", auth: { type: "aws", region: "us-east-1" } }))).toEqual({});
  });

  it.each([
    [{ auth: { type: "google" } }, "api_key", "is needed by auth"],
    [{ auth: { type: "google" }, api_key: "secret:KEY" }, "api_key", "JSON of a service account"],
    [
      { auth: { type: "aws", region: "us-east-1" }, api_key: "secret:KEY" },
      "api_key",
      "ACCESS_KEY_ID:SECRET_ACCESS_KEY",
    ],
    [{ auth: { type: "aws", region: "us-east-1" }, keys: ["secret:AWS", "secret:KEY"] }, "keys.1", "ACCESS_KEY_ID"],
    [{ auth: { type: "aws" }, api_key: "secret:AWS" }, "auth.region", "must be a name such as us-east-1"],
    [{ auth: { type: "basic" }, api_key: "secret:KEY" }, "auth.type", "must be an object with type"],
    [{ api_key: "secret:ACCOUNT" }, "api_key", "a line break"],
    [
      { api_key: "secret:KEY", auth: { type: "header", header: "api-key" }, headers: { "Api-Key": "x" } },
      "headers.Api-Key",
      "contradicts the key",
    ],
  ])("is refused as %j", (fields, path, message) => {
    const read = parsed(fields);
    expect(read).toMatchObject({ ok: false, path: `UPSTREAMS.up.${path}` });
    const text = JSON.stringify(read);
    expect(text).toContain(message);
    for (const secret of Object.values(VARS)) expect(text).not.toContain(secret);
  });
});
