import type { MiddlewareHandler } from "hono";
import { describe, expect, it } from "vitest";
import { makeKeys } from "../../../../src/http/auth/keys.ts";
import { authenticate, refuseRuns, requireRun } from "../../../../src/http/auth/middleware.ts";
import { signRunToken } from "../../../../src/http/auth/token.ts";
import type { AppDeps } from "../../../../src/http/app.ts";
import { createApp } from "../../../../src/http/app.ts";
import type { AppEnv } from "../../../../src/http/context.ts";
import { OPERATOR, type RouteRecord } from "../../../../src/contract/routes/record.ts";
import { SECRET_CHARS_MIN } from "../../../../src/limits.ts";

const NOW_MS = 1_800_000_000_000;
const env = { ADMIN_KEY: "the admin key of these tests, long enough", UPSTREAMS: { sim: { kind: "simulated" } } };

/** As a route of the operator is mounted. */
const ofOperator: MiddlewareHandler<AppEnv> = async (c, next) => {
  c.set("route", { ...ROUTE, name: "GET /operator", method: "GET", path: "/operator" });
  await next();
};
const ROUTE: RouteRecord = { auth: OPERATOR, guide: "docs/upstreams.md", summary: "", replies: {} };

function guarded() {
  const deps: AppDeps = { now: () => NOW_MS, newRequestId: () => "id", log: () => {}, random: () => 0 };
  const app = createApp(deps);
  const auth: MiddlewareHandler<AppEnv> = async (c, next) => {
    await authenticate(c, deps.now());
    await next();
  };
  const others: MiddlewareHandler<AppEnv> = async (c, next) => {
    refuseRuns(c);
    await next();
  };
  app.get("/who", auth, (c) => c.json(c.get("principal")));
  app.get("/operator", ofOperator, auth, others, (c) => c.text("yes"));
  app.get("/mine", auth, (c) => c.text(requireRun(c)));
  return app;
}

const app = guarded();
const get = (path: string, headers: Record<string, string>, bindings: object = env) =>
  app.request(path, { headers }, bindings);
const bearer = (credential: string) => ({ authorization: `Bearer ${credential}` });

async function runToken(expiresAtMs = NOW_MS + 1_000): Promise<string> {
  const { signing } = await makeKeys({ adminKey: env.ADMIN_KEY });
  return signRunToken(signing, { runId: "run-1", depth: 1, expiresAtMs });
}

describe("authenticate", () => {
  it("knows the operator by key, in either header", async () => {
    for (const headers of [
      bearer(env.ADMIN_KEY),
      { authorization: `bearer ${env.ADMIN_KEY}` },
      { "x-api-key": env.ADMIN_KEY },
    ]) {
      const answer = await get("/who", headers);
      expect(await answer.json()).toEqual({ kind: "operator" });
    }
  });

  it("knows a run by token, in either header", async () => {
    const token = await runToken();
    for (const headers of [bearer(token), { "x-api-key": token }]) {
      expect(await (await get("/who", headers)).json()).toEqual({ kind: "run", runId: "run-1", depth: 1 });
    }
  });

  it("refuses a missing, wrong, forged or expired credential with 401 and the scheme", async () => {
    const expired = await runToken(NOW_MS);
    const forged = `${(await runToken()).slice(0, -3)}AAA`;
    for (const headers of [
      {},
      bearer(""),
      { authorization: "Basic eDp5" },
      bearer("guess"),
      bearer(forged),
      bearer(expired),
    ]) {
      const answer = await get("/who", headers);
      expect(answer.status).toBe(401);
      expect(answer.headers.get("www-authenticate")).toBe("Bearer");
      expect(answer.headers.get("x-request-id")).toBe("id");
      expect(await answer.json()).toMatchObject({ error: { code: "invalid_api_key", retryable: false } });
    }
  });

  it("says whether the header is missing, or what it holds is no credential", async () => {
    const messageOf = async (headers: Record<string, string>) => (await get("/who", headers)).text();
    expect(await messageOf({})).toContain("the request has no credential");
    expect(await messageOf({ authorization: await runToken() })).toContain(
      "the header authorization has no credential",
    );
  });

  it("never repeats a credential in an answer", async () => {
    const answer = await get("/who", bearer("guessed-secret"));
    expect(await answer.text()).not.toContain("guessed-secret");
  });

  it("refuses everything with 503 while there is no ADMIN_KEY, and names it", async () => {
    const answer = await get("/who", bearer("x"), { SIGNING_KEY: "s", UPSTREAMS: env.UPSTREAMS });
    expect(answer.status).toBe(503);
    const body: unknown = await answer.json();
    expect(body).toMatchObject({ error: { code: "misconfigured", message: expect.stringContaining("ADMIN_KEY") } });
  });

  it("refuses everything with 503 under a secret that can be guessed, names it, and says how to make one", async () => {
    const key = "k".repeat(SECRET_CHARS_MIN - 1);
    for (const name of ["ADMIN_KEY", "SIGNING_KEY", "SIGNING_KEY_PREVIOUS", "VIEW_KEY"]) {
      const answer = await get("/who", bearer(key), { ...env, [name]: key });
      const text = await answer.text();
      expect([name, answer.status]).toEqual([name, 503]);
      expect(text).toContain(`the secret ${name} has fewer than ${SECRET_CHARS_MIN} characters`);
      expect(text).toContain("openssl rand");
      expect(text).not.toContain(key);
      const longer = { ...env, [name]: `${key}k` };
      const credential = name === "ADMIN_KEY" ? `${key}k` : env.ADMIN_KEY;
      expect((await get("/who", bearer(credential), longer)).status).toBe(200);
    }
  });

  it("refuses everything with 503 while viewers have the key of the operator, or one that signs tokens", async () => {
    const other = "s".repeat(SECRET_CHARS_MIN);
    for (const same of [{ VIEW_KEY: env.ADMIN_KEY }, { SIGNING_KEY: other, VIEW_KEY: other }]) {
      const answer = await get("/who", bearer(env.ADMIN_KEY), { ...env, ...same });
      expect([answer.status, await answer.text()]).toEqual([503, expect.stringContaining("VIEW_KEY is the same")]);
    }
  });

  it("accepts tokens of the previous signing key, and signs none with it", async () => {
    const [old, fresh] = ["old", "new"].map((name) => name.padEnd(SECRET_CHARS_MIN, "-"));
    const tokenBy = async (signingKey?: string) => {
      const { signing } = await makeKeys({
        adminKey: env.ADMIN_KEY,
        ...(signingKey === undefined ? {} : { signingKey }),
      });
      return signRunToken(signing, { runId: "run-1", depth: 1, expiresAtMs: NOW_MS + 1_000 });
    };
    const statuses = async (bindings: object) =>
      await Promise.all(
        [tokenBy(old), tokenBy(fresh), tokenBy()].map(async (token) => {
          return (await get("/who", bearer(await token), { ...env, ...bindings })).status;
        }),
      );
    expect(await statuses({ SIGNING_KEY: fresh })).toEqual([401, 200, 401]);
    expect(await statuses({ SIGNING_KEY: fresh, SIGNING_KEY_PREVIOUS: old })).toEqual([200, 200, 401]);
    expect(await statuses({ SIGNING_KEY: fresh, SIGNING_KEY_PREVIOUS: "derived" })).toEqual([401, 200, 200]);
    expect(await statuses({ SIGNING_KEY_PREVIOUS: old })).toEqual([200, 401, 200]);
    const rotating = { adminKey: env.ADMIN_KEY, signingKey: fresh ?? null, signingKeyPrevious: old ?? null };
    const { signing } = await makeKeys(rotating);
    const token = await signRunToken(signing, { runId: "run-1", depth: 1, expiresAtMs: NOW_MS + 1_000 });
    expect((await get("/who", bearer(token), { ...env, SIGNING_KEY: fresh })).status).toBe(200);
  });

  it("refuses everything with 500 under a wrong configuration, and names the variable", async () => {
    const answer = await get("/who", bearer("x"), { ADMIN_KEY: env.ADMIN_KEY, UPSTREAMS: "{" });
    expect(answer.status).toBe(500);
    const body: unknown = await answer.json();
    expect(body).toMatchObject({ error: { code: "misconfigured", message: expect.stringContaining("UPSTREAMS") } });
  });
});

describe("an operator's route", () => {
  it("is open to the operator and closed to runs", async () => {
    expect((await get("/operator", bearer(env.ADMIN_KEY))).status).toBe(200);
    const answer = await get("/operator", bearer(await runToken()));
    expect(answer.status).toBe(403);
    expect(await answer.json()).toMatchObject({ error: { code: "forbidden" } });
  });
});

describe("a run's route", () => {
  it("acts for the token's run", async () => {
    expect(await (await get("/mine", bearer(await runToken()))).text()).toBe("run-1");
  });

  it("acts for the run that the operator names, and asks for one", async () => {
    const named = await get("/mine", { ...bearer(env.ADMIN_KEY), "x-fanout-run": "run-9" });
    expect(await named.text()).toBe("run-9");
    const unnamed = await get("/mine", bearer(env.ADMIN_KEY));
    expect(unnamed.status).toBe(400);
    expect(await unnamed.json()).toMatchObject({ error: { param: "x-fanout-run" } });
  });

  it("does not let a run speak for another", async () => {
    const headers = bearer(await runToken());
    expect((await get("/mine", { ...headers, "x-fanout-run": "run-1" })).status).toBe(200);
    expect((await get("/mine", { ...headers, "x-fanout-run": "run-2" })).status).toBe(403);
  });
});
