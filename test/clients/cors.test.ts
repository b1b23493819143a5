/** Pages in a browser: the preflight requests of a browser, and the headers that it lets the page read. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { startGateway, type Gateway } from "../support/gateway.ts";
import { startClients, type Clients } from "./world.ts";

const APP = "https://app.example";
/** What OpenAI's client sends with a call, as a browser lists it. */
const SDK_HEADERS =
  "authorization,content-type,x-stainless-arch,x-stainless-lang,x-stainless-os,x-stainless-package-version," +
  "x-stainless-retry-count,x-stainless-runtime,x-stainless-runtime-version,x-stainless-timeout,openai-organization";

let clients: Clients;
beforeAll(async () => void (clients = await startClients({ CORS_ORIGINS: `${APP}, http://localhost:5173` })));
afterAll(() => clients.stop());

function preflight(gateway: Gateway, path: string, origin: string, method = "POST"): Promise<Response> {
  const asked = { origin, "access-control-request-method": method, "access-control-request-headers": SDK_HEADERS };
  return gateway.fetch(path, { method: "OPTIONS", headers: asked });
}

describe("with origins configured", () => {
  it.each([APP, "http://localhost:5173"])("a page of %s may send what SDKs send, on every route", async (origin) => {
    for (const [path, method] of [
      ["/v1/chat/completions", "POST"],
      ["/v1/messages", "POST"],
      ["/v1/responses/resp_1", "DELETE"],
      ["/v1/models", "GET"],
      ["/query", "POST"],
    ] as const) {
      const { status, headers } = await preflight(clients.gateway, path, origin, method);
      expect([status, headers.get("access-control-allow-origin")]).toEqual([204, origin]);
      expect(headers.get("access-control-allow-methods")).toContain(method);
      const allowed = headers.get("access-control-allow-headers")?.split(/, */) ?? [];
      expect(allowed).toEqual(expect.arrayContaining(SDK_HEADERS.split(",")));
      expect(headers.get("access-control-allow-credentials")).toBeNull();
      expect(headers.get("vary")?.toLowerCase()).toContain("origin");
    }
  });

  it("a page may read the headers that SDKs read, of answers, streams and errors", async () => {
    const run = await clients.openRun({ budget: { calls: 2 } });
    const messages = [{ role: "user", content: "x" }];
    const headers = { origin: APP };
    for (const [json, status] of [
      [{ model: "up/raw-limits", messages }, 200],
      [{ model: "up/echo", messages, stream: true }, 200],
      [{ model: "up/echo", messages }, 402],
    ] as const) {
      const answer = await run.fetch("/v1/chat/completions", { json, headers });
      await answer.text();
      expect([answer.status, answer.headers.get("access-control-allow-origin")]).toEqual([status, APP]);
      const exposed = answer.headers.get("access-control-expose-headers")?.split(/, */) ?? [];
      const read = ["x-request-id", "retry-after", "retry-after-ms", "x-should-retry", "x-ratelimit-remaining-tokens"];
      expect(exposed).toEqual(expect.arrayContaining([...read, "x-fanout-budget-remaining-usd"]));
    }
  });

  it.each(["https://evil.example", `${APP}.evil.example`, "http://app.example", "null"])(
    "a page of %s may not",
    async (origin) => {
      const { headers } = await preflight(clients.gateway, "/v1/chat/completions", origin);
      expect(headers.get("access-control-allow-origin")).toBeNull();
      const run = await clients.openRun();
      const answer = await run.fetch("/run", { headers: { origin } });
      expect(answer.headers.get("access-control-allow-origin")).toBeNull();
    },
  );

  it("a program outside of a browser gets no CORS headers", async () => {
    const { headers } = await clients.gateway.fetch("/health");
    expect([...headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
  });
});

async function withGateway(vars: Record<string, unknown>, test: (gateway: Gateway) => Promise<void>): Promise<void> {
  const gateway = await startGateway({ vars });
  try {
    await test(gateway);
  } finally {
    await gateway.stop();
  }
}

it("without configured origins no page may send requests", async () => {
  await withGateway({}, async (gateway) => {
    const { headers } = await preflight(gateway, "/v1/chat/completions", APP);
    expect([...headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
  });
});

it("* lets pages of any origin send requests", async () => {
  await withGateway({ CORS_ORIGINS: "*" }, async (gateway) => {
    const { headers } = await preflight(gateway, "/v1/chat/completions", "https://anything.example");
    expect(headers.get("access-control-allow-origin")).toBe("*");
  });
});

it.each(["https://app.example/", "app.example", "https://app.example/path", "*,https://app.example"])(
  "%s is not an origin, which is reported at the first request",
  async (CORS_ORIGINS) => {
    await withGateway({ CORS_ORIGINS }, async (gateway) => {
      const answer = await gateway.fetch("/v1/models", { token: gateway.adminKey });
      const read = z.object({ error: z.looseObject({ code: z.string(), message: z.string() }) });
      const { error } = read.parse(await answer.json());
      expect([answer.status, error.code]).toEqual([500, "misconfigured"]);
      expect(error.message).toMatch(/^CORS_ORIGINS must be \* or origins such as/);
    });
  },
);
