import { sign } from "hono/jwt";
import { beforeAll, describe, expect, it } from "vitest";
import { holderOf, makeKeys } from "../../../../src/http/auth/keys.ts";
import { TOKEN_PREFIX } from "../../../../src/http/auth/token-prefix.ts";
import { signRunToken, verifyRunToken } from "../../../../src/http/auth/token.ts";
import { DEPTH_MAX, TOKEN_CACHE_MAX } from "../../../../src/limits.ts";

const NOW_MS = 1_800_000_000_000;
const claims = { runId: "run-1", depth: 2, expiresAtMs: NOW_MS + 60_000 };
let key: CryptoKey;

beforeAll(async () => {
  key = (await makeKeys({ adminKey: "admin" })).signing;
});

const refusal = { ok: false, reason: { reason: "invalid_api_key" } };
const base64Url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");

describe("a run token", () => {
  it("says what was signed, under a prefix that scanners recognise", async () => {
    const token = await signRunToken(key, claims);
    expect(token).toMatch(/^fo-run-[\w-]+\.[\w-]+\.[\w-]+$/);
    expect(await verifyRunToken([key], token, NOW_MS)).toEqual({ ok: true, claims });
  });

  it("says whether its run records answers, and in which client's trace its run is", async () => {
    const more = { ...claims, records: true as const, traceId: "4bf92f3577b34da6a3ce929d0e0e4736" };
    expect(await verifyRunToken([key], await signRunToken(key, more), NOW_MS)).toEqual({ ok: true, claims: more });
  });

  it("ends at its expiry, in whole seconds rounded up, also when it was seen before", async () => {
    const token = await signRunToken(key, { ...claims, expiresAtMs: NOW_MS + 1_001 });
    expect(await verifyRunToken([key], token, NOW_MS + 1_999)).toMatchObject({ ok: true });
    expect(await verifyRunToken([key], token, NOW_MS + 2_000)).toMatchObject(refusal);
    expect(await verifyRunToken([key], token, NOW_MS)).toMatchObject({ ok: true });
  });

  it("reports when it expired", async () => {
    const token = await signRunToken(key, { ...claims, expiresAtMs: NOW_MS });
    const verified = await verifyRunToken([key], token, NOW_MS);
    expect(verified).toMatchObject({
      reason: { message: `the run token expired at ${new Date(NOW_MS).toISOString()}` },
    });
  });

  it("is refused when any part of it was changed", async () => {
    const token = await signRunToken(key, claims);
    const [header, , signature] = token.slice(TOKEN_PREFIX.length).split(".");
    const other = base64Url({ sub: "run-2", depth: 0, exp: 9_999_999_999 });
    expect(await verifyRunToken([key], `${TOKEN_PREFIX}${header}.${other}.${signature}`, NOW_MS)).toMatchObject(
      refusal,
    );
    expect(await verifyRunToken([key], token.slice(0, -2), NOW_MS)).toMatchObject(refusal);
    expect(await verifyRunToken([key], token.slice(TOKEN_PREFIX.length), NOW_MS)).toMatchObject(refusal);
    for (const text of ["", TOKEN_PREFIX, `${TOKEN_PREFIX}a.b.c`, `${TOKEN_PREFIX}${"a".repeat(100_000)}`]) {
      expect(await verifyRunToken([key], text, NOW_MS)).toMatchObject(refusal);
    }
  });

  it("is refused when another gateway signed it", async () => {
    const foreign = (await makeKeys({ adminKey: "another admin" })).signing;
    const token = await signRunToken(foreign, claims);
    expect(await verifyRunToken([foreign], token, NOW_MS)).toMatchObject({ ok: true });
    expect(await verifyRunToken([key], token, NOW_MS)).toMatchObject(refusal);
  });

  it("is refused under another algorithm, or none", async () => {
    const payload = { sub: "run-1", depth: 0, exp: 9_999_999_999 };
    const unsigned = `${TOKEN_PREFIX}${base64Url({ alg: "none", typ: "JWT" })}.${base64Url(payload)}.`;
    expect(await verifyRunToken([key], unsigned, NOW_MS)).toMatchObject(refusal);
    const { signing: shared } = await makeKeys({ adminKey: "admin", signingKey: "a shared secret" });
    const strong = TOKEN_PREFIX + (await sign(payload, "a shared secret", "HS512"));
    expect(await verifyRunToken([shared], strong, NOW_MS)).toMatchObject(refusal);
    const expected = TOKEN_PREFIX + (await sign(payload, "a shared secret", "HS256"));
    expect(await verifyRunToken([shared], expected, NOW_MS)).toMatchObject({ ok: true });
  });

  it("is refused when its claims are not a run's", async () => {
    const good = { sub: "r", depth: 0, exp: 9_999_999_999 };
    const signed = async (payload: Record<string, unknown>) => TOKEN_PREFIX + (await sign(payload, key, "HS256"));
    expect(await verifyRunToken([key], await signed({ ...good, depth: DEPTH_MAX }), NOW_MS)).toMatchObject({
      ok: true,
    });
    const wrong = [
      { ...good, depth: DEPTH_MAX + 1 },
      { ...good, depth: -1 },
      { ...good, depth: 0.5 },
      { ...good, sub: "" },
      { ...good, sub: 7 },
      { sub: "r", depth: 0 },
      { ...good, exp: "9999999999" },
    ];
    for (const payload of wrong)
      expect(await verifyRunToken([key], await signed(payload), NOW_MS)).toMatchObject(refusal);
  });

  it("is checked by signature once, however often it is shown", async () => {
    const fresh = (await makeKeys({ adminKey: "counted" })).signing;
    const token = await signRunToken(fresh, claims);
    const verify = crypto.subtle.verify.bind(crypto.subtle);
    let checks = 0;
    crypto.subtle.verify = (...parts: Parameters<typeof verify>) => {
      checks += 1;
      return verify(...parts);
    };
    try {
      for (let i = 0; i < 3; i += 1) await verifyRunToken([fresh], token, NOW_MS);
      expect(checks).toBe(1);
      for (let i = 0; i < TOKEN_CACHE_MAX; i += 1) {
        await verifyRunToken([fresh], await signRunToken(fresh, { ...claims, runId: `run-${i + 2}` }), NOW_MS);
      }
      checks = 0;
      await verifyRunToken([fresh], token, NOW_MS);
      expect(checks).toBe(1);
    } finally {
      crypto.subtle.verify = verify;
    }
  });
});

describe("the keys", () => {
  it("accept the operator's key and nothing near it", async () => {
    const keys = await makeKeys({ adminKey: "s3cret" });
    expect(await holderOf("s3cret", keys)).toBe("operator");
    for (const guess of ["", "s3cre", "s3crett", "S3cret", "s3cret "]) expect(await holderOf(guess, keys)).toBeNull();
  });

  it("derive one signing key from the operator's and another from a configured one", async () => {
    const [derived, again, configured] = [
      await makeKeys({ adminKey: "admin" }),
      await makeKeys({ adminKey: "admin" }),
      await makeKeys({ adminKey: "admin", signingKey: "own" }),
    ];
    const token = await signRunToken(derived.signing, claims);
    expect(await verifyRunToken([again.signing], token, NOW_MS)).toMatchObject({ ok: true });
    expect(await verifyRunToken([configured.signing], token, NOW_MS)).toMatchObject(refusal);
  });

  it("do not sign run tokens with the operator's key itself", async () => {
    const { signing } = await makeKeys({ adminKey: "admin" });
    const forged = TOKEN_PREFIX + (await sign({ sub: "r", depth: 0, exp: 9_999_999_999 }, "admin", "HS256"));
    expect(await verifyRunToken([signing], forged, NOW_MS)).toMatchObject(refusal);
  });
});
