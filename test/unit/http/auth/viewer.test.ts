/** What VIEW_KEY opens, over all routes that are mounted: a route that is added is closed to viewers until it is listed. */
import { describe, expect, it } from "vitest";
import { createApp } from "../../../../src/http/app.ts";
import { ROUTES } from "../../../../src/contract/routes/table.ts";

const VIEW_KEY = "the key of the viewers of these tests";
/** Objects that know nothing: an open route gets as far as to them. */
const object = new Proxy({}, { get: () => () => null });
const namespace = { get: () => object, getByName: () => object, idFromName: (name: string) => name };
const env = {
  ADMIN_KEY: "the admin key of these tests, long enough",
  VIEW_KEY,
  PROBE: "1",
  UPSTREAMS: { sim: { kind: "simulated" } },
  ...Object.fromEntries(["RUN", "SHELF", "GATE", "DIRECTORY", "BATCH", "CASSETTE"].map((name) => [name, namespace])),
};
const app = createApp({ now: Date.now, newRequestId: () => "id", log: () => {}, random: () => 0 });

async function statusOf(method: string, path: string): Promise<number> {
  const headers = { authorization: `Bearer ${VIEW_KEY}`, "x-fanout-run": "run_1", "content-type": "application/json" };
  const body = ["GET", "HEAD", "DELETE"].includes(method) ? {} : { body: "{}" };
  return (await app.request(path, { method, headers, ...body }, env)).status;
}

/** What they may read, written once more: who opens a further route must mean it. docs/security.md says what each leaves out. */
const VIEWER_ROUTES = [
  "GET /dag/:id/outline",
  "GET /groups/:id",
  "GET /metrics",
  "GET /overview",
  "GET /runs",
  "GET /runs/:id",
  "GET /runs/:id/children",
  "GET /runs/:id/events",
  "GET /runs/:id/log",
  "GET /runs/:id/page.html",
  "GET /runs/:id/trace.json",
  "GET /runs/:id/usage",
  "GET /upstreams",
];

/** The routes as they are mounted, each once, without what a parameter matches. */
const mounted = [
  ...new Set(
    app.routes.flatMap(({ method, path }) => (method === "ALL" ? [] : [`${method} ${path.replace(/\{.*?\}/g, "")}`])),
  ),
];
/** Discovery needs no credential. */
const open = ["/", "/docs", "/favicon.ico", "/health", "/limits", "/llms.txt", "/openapi.json", "/stubs", "/ui"];
const isOpen = (path: string) => open.includes(path) || /^\/(stubs|ui)\//.test(path);

describe("the viewers' key", () => {
  it("opens routes that exist", () => {
    const listed = ROUTES.filter(({ auth }) => auth?.includes("viewer")).map(({ name }) => name);
    expect(listed.toSorted()).toEqual(VIEWER_ROUTES);
    expect(VIEWER_ROUTES.filter((route) => !mounted.includes(route))).toEqual([]);
    expect(mounted.length).toBeGreaterThan(80);
  });

  it.each(mounted)("is refused by %s with 403, unless it is listed or needs no credential", async (route) => {
    const [method = "", path = ""] = route.split(" ");
    const status = await statusOf(method, path.replaceAll(/:\w+/g, "x1"));
    const isListed = VIEWER_ROUTES.includes(route);
    expect([route, status === 403]).toEqual([route, !isListed && !isOpen(path)]);
  });

  it("sends HEAD wherever it may send GET, and nowhere else", async () => {
    expect(await statusOf("HEAD", "/runs/x1")).toBe(await statusOf("GET", "/runs/x1"));
    expect(await statusOf("HEAD", "/budget")).toBe(403);
  });

  it("is refused where a listed route is written differently, or would change something", async () => {
    for (const path of ["/runs/x1/log/", "//runs", "/runs/x1%2Fclose", "/RUNS", "/runs/x1/usage?reset=1"]) {
      expect([path, await statusOf("GET", path)]).toEqual([path, expect.toBeOneOf([403, 404])]);
    }
    expect(await statusOf("GET", "/runs/x1/usage?reset=1")).toBe(403);
    expect(await statusOf("POST", "/runs/x1/log")).toBe(403);
    expect(await statusOf("PATCH", "/runs/x1")).toBe(403);
  });
});
