/** `POST /mcp`, used by the official client of the Model Context Protocol. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { documentOf, errorOf, startWorld, type World } from "./world.ts";

const CLIENT = fileURLToPath(new URL("../support/mcp-client.mjs", import.meta.url));

let world: World;
beforeAll(async () => void (world = await startWorld()));
afterAll(() => world.stop());

const printed = z.object({
  server: z.object({ name: z.string(), version: z.string() }),
  spoken: z.string().nullable(),
  tools: z.array(z.string()),
  results: z.array(
    z.looseObject({ content: z.array(z.object({ type: z.literal("text"), text: z.string() })).optional() }),
  ),
});

async function session(token: string, calls: [name: string, args: Record<string, unknown>][], revision = "auto") {
  const args = [CLIENT, world.gateway.url, token, JSON.stringify(calls), revision];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return printed.parse(JSON.parse(stdout));
}
const textOf = ({ content }: { content?: { text: string }[] | undefined }): string => content?.[0]?.text ?? "";

/** What a request of the revision without sessions says of its client. */
const META = {
  _meta: {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "t", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {},
  },
};
const REVISIONS = ["2025-06-18", "2025-11-25", "2026-07-28"];

describe("POST /mcp", () => {
  it.each(REVISIONS)(
    "serves the official client that insists on %s: tools, a call, a batch, a text in parts, the budget",
    { tags: ["slow"] },
    async (revision) => {
      const run = await world.openRun({ default_model: "up-1", budget: { usd: 1 } });
      const calls: [string, Record<string, unknown>][] = [
        ["llm_query", { prompt: "one" }],
        ["llm_batch", { prompts: ["a", "{{status/400}} b", "c"] }],
        ["llm_map", { text: "first\nsecond\n", prompt: "see {{chunk}}", size: 7, by: "lines" }],
        ["budget", {}],
      ];
      const { server, spoken, tools, results } = await session(run.token, calls, revision);
      expect([server.name, spoken, tools]).toEqual([
        "fanout",
        revision,
        ["llm_query", "llm_batch", "llm_map", "budget"],
      ]);
      const [query, batch, map, budget] = results.map(textOf);
      expect(query).toBe("one");
      expect(JSON.parse(batch ?? "")).toEqual(["a", expect.stringMatching(/^\[error\]/), "c"]);
      expect(JSON.parse(map ?? "")).toEqual(["see first\n", "see second\n"]);
      const { usd } = (await documentOf(run)).budget;
      expect(JSON.parse(budget ?? "")).toMatchObject({ usd: { limit: 1, spent: usd.spent } });
    },
  );

  it("agrees with a client that has no wish on the newest revision", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    expect((await session(run.token, [])).spoken).toBe(REVISIONS.at(-1));
  });

  it.each(REVISIONS)(
    "returns a failure in %s as a result that the model can read, wrong arguments too",
    { tags: ["slow"] },
    async (revision) => {
      const run = await world.openRun({ default_model: "up-1", budget: { calls: 0 } });
      const calls: [string, Record<string, unknown>][] = [
        ["llm_query", { prompt: "x" }],
        ["llm_map", { prompt: "{{chunk}}" }],
        ["llm_query", { prompt: 1 }],
        ["llm_query", { prompt: "x", unknown: 1 }],
        ["fly", {}],
      ];
      const { results } = await session(run.token, calls, revision);
      expect(results.slice(0, 4)).toMatchObject([
        { isError: true, structuredContent: { error: { code: "budget_exhausted" } } },
        { isError: true },
        { isError: true },
        { isError: true },
      ]);
      expect(textOf(results[0] ?? {})).toContain("budget_exhausted");
      expect(textOf(results[2] ?? {})).toContain("prompt");
      expect(textOf(results[3] ?? {})).toContain("unknown");
      expect(results[4]).toEqual({ thrown: expect.stringContaining("fly"), code: -32_602 });
    },
  );

  it("keeps a schema, and returns the value that fits it", async () => {
    const run = await world.openRun({ default_model: "sim/echo" });
    const schema = {
      type: "object",
      properties: { n: { type: "integer" } },
      required: ["n"],
      additionalProperties: false,
    };
    const { results } = await session(run.token, [["llm_query", { prompt: "x", schema }]]);
    expect(results[0]).toMatchObject({ structuredContent: { json: { n: expect.any(Number) } } });
  });

  it("needs a run: its token, or the operator's key with x-fanout-run", async () => {
    const ping = { json: { jsonrpc: "2.0", id: 1, method: "ping" } };
    expect((await world.send("/mcp", ping)).status).toBe(401);
    expect(errorOf(await world.sendAsOperator("/mcp", ping)).param).toBe("x-fanout-run");
    const run = await world.openRun();
    const headers = { "x-fanout-run": run.id };
    expect((await world.sendAsOperator("/mcp", { ...ping, headers })).json).toEqual({
      jsonrpc: "2.0",
      id: 1,
      result: {},
    });
  });

  it("has no stream and no session: GET and DELETE are refused, lists of messages too, notifications are received, and unknown methods named", async () => {
    const run = await world.openRun();
    for (const method of ["GET", "DELETE"]) expect((await run.send("/mcp", { method })).status).toBe(405);
    const note = await run.send("/mcp", { json: { jsonrpc: "2.0", method: "notifications/initialized" } });
    expect([note.status, note.text]).toEqual([202, ""]);
    const unknown = await run.send("/mcp", { json: { jsonrpc: "2.0", id: "a", method: "resources/list" } });
    expect(unknown.json).toMatchObject({ id: "a", error: { code: -32_601 } });
    const several = await run.send("/mcp", { json: [{ jsonrpc: "2.0", id: 1, method: "ping" }] });
    expect([several.status, errorOf(several).code]).toEqual([400, "invalid_request"]);
    const listen = { jsonrpc: "2.0", id: 2, method: "subscriptions/listen", params: META };
    const headers = { "mcp-protocol-version": "2026-07-28", "mcp-method": "subscriptions/listen" };
    expect((await run.send("/mcp", { json: listen, headers })).json).toMatchObject({
      id: 2,
      error: { code: expect.any(Number) },
    });
  });

  it("speaks the version that the client asks for, and else the newest that has initialize", async () => {
    const run = await world.openRun();
    const versionFor = async (protocolVersion: string) => {
      const params = { protocolVersion, capabilities: {}, clientInfo: { name: "t", version: "1" } };
      const { json } = await run.send("/mcp", { json: { jsonrpc: "2.0", id: 1, method: "initialize", params } });
      return z.looseObject({ result: z.looseObject({ protocolVersion: z.string() }) }).parse(json).result
        .protocolVersion;
    };
    expect([await versionFor("2024-11-05"), await versionFor("1999-01-01")]).toEqual(["2024-11-05", "2025-11-25"]);
  });

  const PING = { jsonrpc: "2.0", id: 1, method: "ping" };

  it.each(["{", "", "\u0000", "[1,]"])("answers the body %j with the parse error of JSON-RPC", async (body) => {
    const run = await world.openRun();
    const broken = await run.send("/mcp", { method: "POST", body, headers: { "content-type": "application/json" } });
    expect([broken.status, broken.json]).toEqual([
      400,
      { jsonrpc: "2.0", id: null, error: { code: -32_700, message: expect.any(String) } },
    ]);
  });

  it("refuses requests of a version that it does not speak, and names those that it speaks", async () => {
    const run = await world.openRun();
    const sent = (version: string, params?: object) =>
      run.send("/mcp", {
        json: { ...PING, params },
        headers: { "mcp-protocol-version": version, "mcp-method": "ping" },
      });
    expect((await sent("2025-06-18")).status).toBe(200);
    const version = "2030-01-01";
    const refused = await sent(version, {
      _meta: { ...META._meta, "io.modelcontextprotocol/protocolVersion": version },
    });
    expect([refused.status, refused.json]).toMatchObject([400, { error: { data: { supported: ["2026-07-28"] } } }]);
    expect((await sent("1999-01-01")).status).toBe(400);
  });

  it("refuses pages of origins that are not configured", async () => {
    const run = await world.openRun();
    for (const origin of ["https://evil.example", "null", world.gateway.url]) {
      const refused = await run.send("/mcp", { json: PING, headers: { origin } });
      expect([origin, refused.status, errorOf(refused).code]).toEqual([origin, 403, "forbidden"]);
    }
  });
});
