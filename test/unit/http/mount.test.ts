/** What stands before the handlers of the mounted routes: each route has the guards that it needs, and no other. */
import { describe, expect, it } from "vitest";
import { createApp } from "../../../src/http/app.ts";
import { makeKeys } from "../../../src/http/auth/keys.ts";
import { signRunToken } from "../../../src/http/auth/token.ts";
import { guardsOf, type Guard } from "../../../src/http/mount.ts";
import { bodyBytesMax, patternOf, type RouteKey } from "../../../src/contract/routes/record.ts";
import { ROUTES } from "../../../src/contract/routes/table.ts";

const ADMIN_KEY = "the admin key of these tests, long enough";
const app = createApp({ now: () => 0, newRequestId: () => "id", log: () => {}, random: () => 0 });

/** The guards of a route of the table. */
function guardsIn(name: RouteKey): Guard[] {
  const route = ROUTES.find((each) => each.name === name);
  if (route === undefined) throw new Error(`no route ${name}`);
  return guardsOf(route);
}

describe("the guards of a route", () => {
  it("are only those that can do something for it", () => {
    expect(guardsIn("GET /health")).toEqual([]);
    expect(guardsIn("GET /budget")).toEqual(["credential", "run"]);
    expect(guardsIn("GET /runs")).toEqual(["credential", "run", "others"]);
    expect(guardsIn("POST /query")).toEqual(["credential", "body", "reserve", "run"]);
    expect(guardsIn("POST /runs/:id/close")).toEqual(["credential", "body", "run"]);
  });

  it("cost a request one turn of the router, and what surrounds all routes another", () => {
    const mounted = app.routes.filter(({ method }) => method !== "ALL");
    expect(mounted.map(({ method, path }) => `${method} ${path}`)).toEqual(
      ROUTES.map((route) => `${route.method} ${patternOf(route)}`),
    );
    expect(app.routes.length - mounted.length).toBe(1);
  });

  it("let nobody in without a credential, on every route that demands one", async () => {
    const demanding = ROUTES.filter(({ auth }) => auth !== null);
    expect(demanding.length).toBeGreaterThan(80);
    for (const { name, method, path } of demanding) {
      expect((await app.request(path.replace(/:\w+/g, "x"), { method }, { ADMIN_KEY })).status, name).toBe(401);
    }
  });

  it("refuse a body that is announced to be too large, on every route that takes one", async () => {
    const takers = ROUTES.filter((route) => route.auth !== null && bodyBytesMax(route) !== null);
    expect(takers.length).toBeGreaterThan(30);
    for (const route of takers) {
      const headers = {
        authorization: `Bearer ${ADMIN_KEY}`,
        "content-length": String((bodyBytesMax(route) ?? 0) + 1),
      };
      const init = { method: route.method, headers };
      expect((await app.request(route.path.replace(/:\w+/g, "x"), init, { ADMIN_KEY })).status, route.name).toBe(413);
    }
  });

  it("name the run on a failure of the handler as on an answer of it", async () => {
    const { signing } = await makeKeys({ adminKey: ADMIN_KEY });
    const token = await signRunToken(signing, { runId: "run_1", depth: 0, expiresAtMs: 60_000 });
    const budget = { usd: { remaining: 1.5 } };
    const RUN = { idFromName: () => "id", get: () => ({ budget: async () => budget }) };
    const init = {
      method: "POST",
      body: "{",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    };
    const answer = await app.request("/query", init, { ADMIN_KEY, RUN });
    const shown = ["x-fanout-run", "x-fanout-budget-remaining-usd", "x-request-id"].map((name) =>
      answer.headers.get(name),
    );
    expect([answer.status, ...shown]).toEqual([400, "run_1", "1.5", "id"]);
  });

  it("keep a run out of every route that is not open to runs", async () => {
    const { signing } = await makeKeys({ adminKey: ADMIN_KEY });
    const token = await signRunToken(signing, { runId: "run_1", depth: 0, expiresAtMs: 60_000 });
    const closed = ROUTES.filter(({ auth }) => auth !== null && !auth.includes("run"));
    expect(closed.length).toBeGreaterThan(10);
    for (const { name, method, path } of closed) {
      const init = { method, headers: { authorization: `Bearer ${token}` } };
      expect((await app.request(path.replace(/:\w+/g, "x"), init, { ADMIN_KEY })).status, name).toBe(403);
    }
  });
});
