import { generateKeyPairSync } from "node:crypto";
import { describe, expect, it } from "vitest";
import { TOKEN_RENEWED_BEFORE_MS, TOKENS_KEPT_MAX } from "../../../../src/limits.ts";
import type { Upstream } from "../../../../src/providers/config/types.ts";
import { AccessTokens } from "../../../../src/providers/credentials/access-tokens.ts";
import { keyHeadersOf } from "../../../../src/providers/kinds/table.ts";
import { withoutOwnSecrets } from "../../../../src/providers/redact.ts";
import { makeUpstream } from "../make.ts";

const PEM = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ type: "pkcs8", format: "pem" });
const account = (email = "run@project.example", privateKey: unknown = PEM): string =>
  JSON.stringify({ client_email: email, private_key: privateKey, token_uri: "https://tokens.test/token" });
const google = (apiKey = account()): Upstream =>
  makeUpstream({ apiKey, auth: { type: "google", scope: "https://scope.test/all" } });

const LIFE_S = 3_599;

/** Tokens of an endpoint that numbers them, at a clock that is set. */
function tokensAt(clock: { nowMs: number }, answer: (count: number) => Response | Promise<Response> = numbered) {
  let fetched = 0;
  const tokens = new AccessTokens({
    fetch: async () => {
      fetched += 1;
      return await answer(fetched);
    },
    now: () => clock.nowMs,
    timeout: () => new AbortController().signal,
  });
  const tokenOf = async (upstream: Upstream, owner: object = {}): Promise<string> => {
    const ready = await tokens.ready(upstream, owner);
    return ready.ok ? (keyHeadersOf(ready.upstream)["authorization"] ?? "none") : ready.reason.reason;
  };
  return { tokens, tokenOf, count: () => fetched };
}

function numbered(count: number): Response {
  return Response.json({ access_token: `token-${count}`, expires_in: LIFE_S });
}

describe("the access token of a service account", () => {
  it("is fetched once, and renewed before it ends", async () => {
    const clock = { nowMs: 1_000_000 };
    const { tokenOf, count } = tokensAt(clock);
    expect(await tokenOf(google())).toBe("Bearer token-1");
    const renewedMs = clock.nowMs + LIFE_S * 1_000 - TOKEN_RENEWED_BEFORE_MS;
    clock.nowMs = renewedMs - 1;
    expect(await tokenOf(google())).toBe("Bearer token-1");
    clock.nowMs = renewedMs;
    expect(await tokenOf(google())).toBe("Bearer token-2");
    expect(count()).toBe(2);
  });

  it("is fetched once for all calls of one owner that wait for it", async () => {
    const { tokenOf, count } = tokensAt({ nowMs: 0 });
    const owner = {};
    const all = await Promise.all(Array.from({ length: 64 }, () => tokenOf(google(), owner)));
    expect(new Set(all)).toEqual(new Set(["Bearer token-1"]));
    expect(count()).toBe(1);
  });

  it("serves to its end while no new one comes, and not beyond it", async () => {
    const clock = { nowMs: 0 };
    const { tokenOf } = tokensAt(clock, (count) => (count === 1 ? numbered(1) : new Response("busy", { status: 503 })));
    await tokenOf(google());
    clock.nowMs = LIFE_S * 1_000 - 1;
    expect(await tokenOf(google())).toBe("Bearer token-1");
    clock.nowMs += 1;
    expect(await tokenOf(google())).toBe("upstream_error");
  });

  it("is another one after its upstream refused it, and for another account", async () => {
    const { tokens, tokenOf } = tokensAt({ nowMs: 0 });
    await tokenOf(google());
    tokens.forget(google());
    expect(await tokenOf(google())).toBe("Bearer token-2");
    expect(await tokenOf(google(account("other@project.example")))).toBe("Bearer token-3");
  });

  it("is kept for so many keys, and fetched again for the oldest", { tags: ["slow"] }, async () => {
    const { tokenOf, count } = tokensAt({ nowMs: 0 });
    for (let at = 0; at <= TOKENS_KEPT_MAX; at++) await tokenOf(google(account(`run-${at}@project.example`)));
    await tokenOf(google(account("run-1@project.example")));
    expect(count()).toBe(TOKENS_KEPT_MAX + 1);
    await tokenOf(google(account("run-0@project.example")));
    expect(count()).toBe(TOKENS_KEPT_MAX + 2);
  });

  it("is removed from what its upstream says, as is the private key", async () => {
    const { tokens } = tokensAt({ nowMs: 0 });
    const ready = await tokens.ready(google(), {});
    if (!ready.ok) throw new Error("no token");
    expect(withoutOwnSecrets("who sent token-1 here?", ready.upstream)).toBe("who sent [redacted] here?");
    expect(withoutOwnSecrets(`a key: ${String(PEM)}`, google())).toBe("a key: [redacted]");
  });

  it.each([
    [
      "a refused key",
      () => Response.json({ error: "invalid_grant" }, { status: 400 }),
      false,
      "status 400: invalid_grant",
    ],
    ["a busy endpoint", () => new Response("busy", { status: 503 }), true, "status 503"],
    ["an answer without a token", () => Response.json({}), true, "the answer has no access_token"],
    ["no answer", () => Promise.reject(new Error("reset")), true, "no answer came"],
    [
      "an answer that quotes what was sent",
      () => Response.json({ error: "eyJhbGciOi.secret" }, { status: 400 }),
      false,
      "names no error",
    ],
  ])("is not there after %s", async (_, answer, retryable, words) => {
    const { tokens } = tokensAt({ nowMs: 0 }, answer);
    const ready = await tokens.ready(google(), {});
    expect(ready).toMatchObject({ ok: false, retryable, ...(retryable ? {} : { stop: "invalid_key" }) });
    expect(JSON.stringify(ready)).toContain(words);
    expect(JSON.stringify(ready)).not.toContain("secret");
  });

  it("is not there for a private key that is none", async () => {
    const { tokens, count } = tokensAt({ nowMs: 0 });
    const ready = await tokens.ready(google(account("run@project.example", "-----BEGIN PRIVATE KEY-----\nAAAA")), {});
    expect(ready).toMatchObject({ ok: false, stop: "invalid_key" });
    expect(count()).toBe(0);
  });
});

it("leaves every other upstream as it is", async () => {
  const { tokens, count } = tokensAt({ nowMs: 0 });
  const upstream = makeUpstream();
  expect(await tokens.ready(upstream, {})).toEqual({ ok: true, upstream });
  expect(count()).toBe(0);
});
