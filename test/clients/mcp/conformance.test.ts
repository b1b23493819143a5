/**
 * The conformance suite of the Model Context Protocol, as a process, against `/mcp`: the scenarios that need no tools, prompts or
 * resources of the suite's own. The suite sends no credential, so a relay before the gateway adds one.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { createServer, request as send, type Server } from "node:http";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startClients, type Clients } from "../world.ts";

const SUITE = join(import.meta.dirname, "node_modules/@modelcontextprotocol/conformance");
const SCENARIOS = ["server-initialize", "ping", "tools-list", "dns-rebinding-protection"];
/** Far more than a scenario takes: a suite that hangs fails here, and names what it printed. */
const TIME_MAX_MS = 120_000;

describe.skipIf(!existsSync(SUITE))("the suite of test/clients/mcp (npm install there)", () => {
  let clients: Clients;
  let relay: Server;
  let port = 0;
  let headers: Record<string, string> = {};

  beforeAll(async () => {
    relay = createServer((incoming, outgoing) => {
      const target = new URL(incoming.url ?? "/", clients.gateway.url);
      const passed = send(
        target,
        { method: incoming.method, headers: { ...incoming.headers, ...headers } },
        (answer) => {
          outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
          answer.pipe(outgoing);
        },
      );
      incoming.pipe(passed);
    });
    await new Promise<void>((resolve) => void relay.listen(0, "127.0.0.1", resolve));
    const address = relay.address();
    port = typeof address === "object" && address !== null ? address.port : 0;
    clients = await startClients({ CORS_ORIGINS: `http://127.0.0.1:${port},http://localhost:${port}` });
    const { token } = await clients.openRun();
    headers = { authorization: `Bearer ${token}` };
  });

  afterAll(async () => {
    relay.close();
    await clients.stop();
  });

  it.each(SCENARIOS)("passes %s", { timeout: TIME_MAX_MS }, async (scenario) => {
    const args = [
      join(SUITE, "dist/index.js"),
      "server",
      "--url",
      `http://127.0.0.1:${port}/mcp`,
      "--scenario",
      scenario,
    ];
    const run = promisify(execFile)(process.execPath, args, { timeout: TIME_MAX_MS, cwd: import.meta.dirname });
    const printed = await run.then(
      ({ stdout }) => stdout,
      (error: unknown) => String(error),
    );
    expect(printed).toMatch(/Passed: ([1-9]\d*)\/\1, 0 failed/);
  });
});
