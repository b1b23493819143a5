import { describe, expect, it } from "vitest";
import { makeKeys } from "../../../src/auth/keys.ts";
import { authenticate, requireOperator, requireRun } from "../../../src/auth/middleware.ts";
import { signRunToken } from "../../../src/auth/token.ts";
import type { AppDeps } from "../../../src/app.ts";
import { createApp } from "../../../src/app.ts";

const NOW_MS = 1_800_000_000_000;
const env = { ADMIN_KEY: "the admin key", UPSTREAMS: { sim: { kind: "simulated" } } };

function guarded() {
  const deps: AppDeps = { now: () => NOW_MS, newRequestId: () => "id", log: () => {}, random: () => 0 };
  const app = createApp(deps);
  const auth = authenticate(deps);
  app.get("/who", auth, (c) => c.json(c.get("principal")));
  app.get("/operator", auth, (c) => {
    requireOperator(c);
    return c.text("yes");
  });
  app.get("/mine", auth, (c) => c.text(requireRun(c)));
  return app;
}

const app = guarded();
const get = (path: string, headers: Record<string, string>, bindings: object = env) =>
  app.request(path, { headers }, bindings);
const bearer = (credential: string) => ({ authorization: `Bearer ${credential}` });

async function runToken(expiresAtMs = NOW_MS + 1_000): Promise<string> {
  const { signing } = await makeKeys(env.ADMIN_KEY, null);
  return signRunToken(signing, { runId: "run-1", depth: 1, expiresAtMs });
}

describe("authenticate", () => {
  it("knows the operator by key, in either header", async () => {
    for (const headers of [
      bearer("the admin key"),
      { authorization: "bearer the admin key" },
      { "x-api-key": "the admin key" },
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

  it("refuses everything with 500 under a wrong configuration, and names the variable", async () => {
    const answer = await get("/who", bearer("x"), { ADMIN_KEY: "k", UPSTREAMS: "{" });
    expect(answer.status).toBe(500);
    const body: unknown = await answer.json();
    expect(body).toMatchObject({ error: { code: "misconfigured", message: expect.stringContaining("UPSTREAMS") } });
  });
});

describe("an operator's route", () => {
  it("is open to the operator and closed to runs", async () => {
    expect((await get("/operator", bearer("the admin key"))).status).toBe(200);
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
    const named = await get("/mine", { ...bearer("the admin key"), "x-fanout-run": "run-9" });
    expect(await named.text()).toBe("run-9");
    const unnamed = await get("/mine", bearer("the admin key"));
    expect(unnamed.status).toBe(400);
    expect(await unnamed.json()).toMatchObject({ error: { param: "x-fanout-run" } });
  });

  it("does not let a run speak for another", async () => {
    const headers = bearer(await runToken());
    expect((await get("/mine", { ...headers, "x-fanout-run": "run-1" })).status).toBe(200);
    expect((await get("/mine", { ...headers, "x-fanout-run": "run-2" })).status).toBe(403);
  });
});
