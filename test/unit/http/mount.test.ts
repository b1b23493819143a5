/** What stands before the handlers of the mounted routes: each route has the guards that it needs, and no other. */
import { describe, expect, it } from "vitest";
import { createApp } from "../../../src/http/app.ts";
import { makeKeys } from "../../../src/http/auth/keys.ts";
import { signRunToken } from "../../../src/http/auth/token.ts";
import { mayOpen } from "../../../src/http/disk-reserve.ts";
import { bodyBytesMax, patternOf, type RouteKey } from "../../../src/contract/routes/record.ts";
import { ROUTES } from "../../../src/contract/routes/table.ts";

const ADMIN_KEY = "the admin key of these tests, long enough";
const app = createApp({ now: () => 0, newRequestId: () => "id", log: () => {}, random: () => 0 });

/** The names of what a request to a route passes, without the handler. */
function guardsOf(name: RouteKey): string[] {
  const route = ROUTES.find((each) => each.name === name);
  if (route === undefined) throw new Error(`no route ${name}`);
  const path = patternOf(route);
  return app.routes
    .filter((mounted) => mounted.method === route.method && mounted.path === path)
    .map(({ handler }) => handler.name)
    .slice(0, -1);
}

describe("the guards of a route", () => {
  it("are only those that can do something for it", () => {
    expect(guardsOf("GET /health")).toEqual(["named"]);
    expect(guardsOf("GET /budget")).toEqual(["named", "authenticate", "underRun"]);
    expect(guardsOf("GET /runs")).toEqual(["named", "authenticate", "underRun", "refuseRuns"]);
    expect(guardsOf("POST /query")).toEqual(["named", "authenticate", "boundBody", "keepReserve", "underRun"]);
    const close = guardsOf("POST /runs/:id/close");
    expect(close).toEqual(["named", "authenticate", "boundBody", "underRun"]);
  });

  it("are those that its record demands, of every route", () => {
    const demanded = ROUTES.filter(({ auth }) => auth !== null).map((route) => ({
      name: route.name,
      guards: ["authenticate", ...(bodyBytesMax(route) === null ? [] : ["boundBody"])]
        .concat(mayOpen(route) ? ["keepReserve"] : [], ["underRun"])
        .concat(route.auth?.includes("run") === true ? [] : ["refuseRuns"]),
    }));
    expect(demanded.length).toBeGreaterThan(80);
    for (const { name, guards } of demanded) expect(guardsOf(name), name).toEqual(["named", ...guards]);
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
