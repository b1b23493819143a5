import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createApp } from "../../../src/http/app.ts";
import { CATALOG_DATE } from "../../../src/run/money/prices.ts";
import { Refusal } from "../../../src/errors.ts";
import { ARRIVAL_LOOK_MS, ITEMS_PER_BATCH_MAX, OBJECT_OVERLOADED_RETRY_MS } from "../../../src/limits.ts";

function subject({ random = () => 0 }: { random?: () => number } = {}) {
  const logged: string[] = [];
  const log = (message: string) => logged.push(message);
  const app = createApp({ now: () => 0, newRequestId: () => "made-here", log, random });
  /** As the runtime asks: with the Worker's variables, of which there are none. */
  const request = (path: string, init: RequestInit = {}) => app.request(path, init, {});
  return { app, request, logged };
}

describe("every answer", () => {
  it("carries a request id, the client's own if it is harmless", async () => {
    const { request } = subject();
    const id = async (sent: string) =>
      (await request("/health", { headers: { "x-request-id": sent } })).headers.get("x-request-id");
    expect((await request("/health")).headers.get("x-request-id")).toBe("made-here");
    expect(await id("Abc_1-z")).toBe("Abc_1-z");
    expect(await id("a".repeat(64))).toBe("a".repeat(64));
    for (const sent of ["a".repeat(65), "a b", "a\u00e9", "<x>"]) expect(await id(sent)).toBe("made-here");
  });

  it("carries it when it is passed on from an upstream that has its own", async () => {
    const { app, request } = subject();
    app.get("/raw", () => new Response("x", { headers: { "x-request-id": "theirs", "x-other": "kept" } }));
    const answer = await request("/raw");
    expect(answer.headers.get("x-request-id")).toBe("made-here");
    expect(answer.headers.get("x-other")).toBe("kept");
  });
});

describe("the arrival of a call", () => {
  it("is before its body is read, less the time for which the instance stood still: one request looks at the clock", async () => {
    let nowMs = 1_000;
    const waits: (() => void)[] = [];
    const kept: Promise<unknown>[] = [];
    const answers: (() => void)[] = [];
    const wait = (): Promise<void> => new Promise((resolve) => waits.push(resolve));
    const app = createApp({ now: () => nowMs, newRequestId: () => "id", log: () => {}, random: () => 0, wait });
    app.all("/arrived", async (c) => {
      if (c.req.method === "POST") await new Promise<void>((resolve) => answers.push(resolve));
      return c.json(c.get("acceptedAtMs"));
    });
    const waitUntil = (promise: Promise<unknown>): void => void kept.push(promise);
    const context = { waitUntil, passThroughOnException() {}, props: {} };
    const arrival = async (method: string): Promise<unknown> =>
      (await app.request("/arrived", { method }, {}, context)).json();
    const calls = [arrival("POST")];
    nowMs = 1_600;
    calls.push(arrival("POST"));
    expect([await arrival("GET"), waits.length]).toEqual([1_600, 1]);
    for (const answer of answers) answer();
    expect(await Promise.all(calls)).toEqual([1_000, 1_000 + ARRIVAL_LOOK_MS]);
    nowMs = 1_700;
    calls.push(arrival("POST"));
    answers.at(-1)?.();
    expect(await calls.at(-1)).toBe(1_700);
    for (const waited of waits) waited();
    await Promise.all(kept);
    expect([waits.length, kept.length]).toEqual([2, 2]);
  });
});

describe("a failed request", () => {
  it("is 404 in the common form where there is no such path", async () => {
    const answer = await subject().request("/nowhere");
    expect(answer.status).toBe(404);
    expect(answer.headers.get("content-type")).toContain("application/json");
    expect(answer.headers.get("x-request-id")).toBe("made-here");
    expect(await answer.json()).toMatchObject({
      error: { code: "not_found", message: "GET /nowhere not found; /docs lists the routes", param: null },
    });
  });

  it.each([
    ["POST", "/chat/completions", "/v1/chat/completions"],
    ["POST", "/v1/v1/messages", "/v1/messages"],
    ["POST", "/v1/query", "/query"],
    ["POST", "//batch", "/batch"],
    ["POST", "/batch/", "/batch"],
  ])("is 404 that names the path which a wrong base URL misses: %s %s", async (method, path, meant) => {
    const answer = await subject().request(`http://gateway${path}`, { method });
    expect(answer.status).toBe(404);
    expect(await answer.json()).toMatchObject({
      error: { code: "not_found", message: `${method} ${path} not found; did you mean ${meant}?` },
    });
  });

  it("is 405 with the methods of the path where only the method is wrong", async () => {
    const { request } = subject();
    const put = await request("/runs/7", { method: "PUT" });
    expect(put.status).toBe(405);
    expect(put.headers.get("allow")).toBe("GET, HEAD, PATCH, DELETE");
    // Ids of graphs do not begin with a v: the path is another one.
    expect((await request("/dag/validate", { method: "PATCH" })).headers.get("allow")).toBe("POST");
    expect(await put.json()).toMatchObject({ error: { code: "method_not_allowed" } });
    expect((await request("/health", { method: "POST" })).headers.get("allow")).toBe("GET, HEAD");
    expect((await request("/stubs/python", { method: "DELETE" })).status).toBe(405);
    expect((await request("/things/7", { method: "POST" })).status).toBe(404);
  });

  it("answers HEAD like GET, without a body", async () => {
    const { request } = subject();
    const head = await request("/health", { method: "HEAD" });
    expect([head.status, await head.text()]).toEqual([200, ""]);
    expect((await request("/nowhere", { method: "HEAD" })).status).toBe(404);
  });

  it("answers as its reason says when a handler refuses", async () => {
    const { app, request, logged } = subject();
    app.get("/full", () => {
      throw new Refusal({ reason: "overloaded", message: "too many calls wait", retryAfterMs: 1_500 });
    });
    const answer = await request("/full");
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "2"]);
    expect(logged).toEqual([]);
  });

  it("is 503 when an object has more requests than it can take, whichever object that is", async () => {
    const { app, request, logged } = subject();
    app.get("/full", () => {
      throw Object.assign(new Error("too many requests"), { overloaded: true, retryable: true });
    });
    const answer = await request("/full");
    expect(answer.status).toBe(503);
    expect(answer.headers.get("retry-after-ms")).toBe(String(OBJECT_OVERLOADED_RETRY_MS));
    expect(await answer.json()).toMatchObject({ error: { code: "overloaded", retryable: true } });
    expect(logged).toEqual([]);
  });

  it.each([
    { drawn: 0, waitMs: 1_500 },
    { drawn: 0.5, waitMs: 2_250 },
    { drawn: 0.999_999, waitMs: 2_999 },
  ])("advises $waitMs ms for a wait of 1,500 if $drawn is drawn", async ({ drawn, waitMs }) => {
    const { app, request } = subject({ random: () => drawn });
    app.get("/full", () => {
      throw new Refusal({ reason: "overloaded", message: "too many calls wait", retryAfterMs: 1_500 });
    });
    const answer = await request("/full");
    expect(answer.headers.get("retry-after-ms")).toBe(String(waitMs));
    expect(await answer.json()).toMatchObject({ error: { retry_after_ms: waitMs } });
  });

  it("draws no wait for other reasons", async () => {
    const { app, request } = subject({ random: () => 0.5 });
    const reason = { reason: "upstream_rate_limited", upstream: "u", message: "later", retryAfterMs: 1_500 } as const;
    app.get("/limited", () => {
      throw new Refusal(reason);
    });
    expect((await request("/limited")).headers.get("retry-after-ms")).toBe("1500");
  });

  it("is 500 without a detail when the gateway breaks; the log has it under the request id", async () => {
    const { app, request, logged } = subject();
    app.get("/broken", () => {
      throw new TypeError("the secret detail");
    });
    const answer = await request("/broken");
    const text = await answer.text();
    expect(answer.status).toBe(500);
    expect(text).not.toContain("secret detail");
    expect(text).toContain("made-here");
    expect(logged).toHaveLength(1);
    expect(logged[0]).toMatch(/made-here[^]*the secret detail/);
  });
});

describe("discovery, without a credential or a configuration", () => {
  const json = async (path: string) => {
    const answer = await subject().request(path);
    expect(answer.status).toBe(200);
    return (await answer.json()) as Record<string, unknown>;
  };

  it("says what this is, and links only to what exists", { tags: ["slow"] }, async () => {
    const about = await json("/");
    const packageJson = JSON.parse(readFileSync("package.json", "utf8"));
    expect(about).toMatchObject({ name: "fanout", version: packageJson.version });
    for (const path of Object.values(about["links"] as Record<string, string>)) {
      expect((await subject().request(path)).status).toBe(200);
    }
  });

  it("answers that it is healthy", async () => {
    expect(await json("/health")).toMatchObject({ status: "ok" });
  });

  it("names the deployed version, where Cloudflare has given it an id", async () => {
    for (const path of ["/", "/health"]) {
      const answer = await createApp().request(path, {}, { CF_VERSION_METADATA: { id: "version-1", tag: "" } });
      expect(await answer.json()).toMatchObject({ deployment: "version-1" });
      expect(await json(path)).toMatchObject({ deployment: null });
    }
  });

  it("lists the bounds that a client can meet", async () => {
    const limits = await json("/limits");
    expect(limits).toMatchObject({ items_per_batch_max: ITEMS_PER_BATCH_MAX, parallel_max: 4_096 });
    expect(limits["prices_date"]).toBe(CATALOG_DATE);
    expect(Object.keys(limits)).toEqual(expect.arrayContaining(["body_bytes_max", "prompt_bytes_max"]));
  });

  it("lists the stubs, and says which there are to who asks for another", async () => {
    const { data } = z.object({ data: z.array(z.unknown()) }).parse(await json("/stubs"));
    expect(data).toContainEqual({ lang: "python", path: "/stubs/python", file: "fanout.py" });
    const other = await subject().request("/stubs/cobol");
    expect(other.status).toBe(404);
    expect(await other.text()).toMatch(/available: python, /);
  });
});

describe("the OpenAPI document", () => {
  const read = async () => JSON.parse(await (await subject().request("/openapi.json")).text());

  it("is 3.1 and describes every route there is", async () => {
    const document = await read();
    expect(document.openapi).toBe("3.1.0");
    // Probes measure a deployment, are off by default, and belong to docs/probe.md instead.
    const isPublic = (path: string): boolean => !path.startsWith("/_probe/");
    const routes = subject().app.routes.filter(({ method, path }) => method !== "ALL" && isPublic(path));
    expect(routes.length).toBeGreaterThan(5);
    for (const { method, path } of routes) {
      const documented = path.replace(/:(\w+)(?:\{[^}]*\})?/g, "{$1}");
      expect(Object.keys(document.paths[documented] ?? {}), documented).toContain(method.toLowerCase());
    }
  });

  it("has no reference that leads nowhere, and every error in the one form", async () => {
    const document = await read();
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)].map(
      ([, name]) => name,
    );
    expect(references).toContain("Error");
    for (const name of references) expect(document.components.schemas).toHaveProperty(String(name));
  });

  it("states the same bounds as the schemas that requests are read with", async () => {
    const { Batch, Query, RunRequest } = (await read()).components.schemas;
    expect(Batch.properties.prompts).toEqual({
      type: "array",
      items: { type: "string" },
      maxItems: ITEMS_PER_BATCH_MAX,
    });
    expect(Batch.additionalProperties).toBe(false);
    expect(Query.properties.priority.anyOf[1]).toEqual({ type: "integer", enum: [4, 3, 2, 1, 0] });
    expect(RunRequest.properties.max_parallel).toMatchObject({ minimum: 0, maximum: 4_096 });
  });
});
