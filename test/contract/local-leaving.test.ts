/**
 * `npm start` notices clients that leave: a call that nobody waits for any more is given up at its upstream, whether its
 * client closed its connection, aborted its fetch or reset. Each kind of leaving on each kind of route. And what the upstream
 * receives comes from the gateway alone.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { startLocalGateway, type LocalGateway } from "../../scripts/local/gateway.ts";

const ADMIN_KEY = "operator-key-of-these-tests-0123";
/** An upstream that never answers, and counts the connections that its callers close. */
class SilentUpstream {
  requests = 0;
  abandoned = 0;
  headers: IncomingHttpHeaders = {};
  readonly #server: Server = createServer((request, reply) => {
    this.requests += 1;
    this.headers = request.headers;
    request.resume();
    reply.once("close", () => (this.abandoned += 1));
  });

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    const address = this.#server.address();
    return `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}/v1`;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

const upstream = new SilentUpstream();
let folder = "";
let gateway: LocalGateway;
let token = "";

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "fanout-local-"));
  const prices = { "*": { input: 1, output: 1 } };
  const up = { kind: "openai", base_url: await upstream.start(), models: ["m"], prices };
  const vars = { ADMIN_KEY, DEFAULT_MODEL: "m", UPSTREAMS: { up } };
  const log = (): void => undefined;
  gateway = await startLocalGateway({ vars }, { host: "127.0.0.1", port: 0, dataDir: folder, log });
  const opened = await fetch(`${gateway.url}/runs`, {
    method: "POST",
    headers: { authorization: `Bearer ${ADMIN_KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ budget: { usd: 1 } }),
  });
  ({ token } = z.looseObject({ token: z.string() }).parse(await opened.json()));
});
afterAll(async () => {
  await gateway?.stop();
  upstream.stop();
  rmSync(folder, { recursive: true, force: true });
});

const CALLS: Record<string, unknown> = {
  "/query": { prompt: "x" },
  "/v1/chat/completions": { model: "m", messages: [{ role: "user", content: "x" }] },
  "/batch": { prompts: ["x"], detach: false },
};

/** Sends the request on a connection of its own. */
function send(path: string, body: string): Socket {
  const { hostname, port } = new URL(gateway.url);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  socket.on("error", () => undefined);
  const headers = `authorization: Bearer ${token}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}`;
  socket.write(`POST ${path} HTTP/1.1\r\nhost: localhost\r\n${headers}\r\n\r\n${body}`);
  return socket;
}

/** Starts a call and returns what makes its client leave. */
const LEAVING: Record<string, (path: string, body: string) => () => void> = {
  "closes its sending side": (path, body) => {
    const socket = send(path, body);
    return () => void socket.end();
  },
  "closes its connection": (path, body) => {
    const socket = send(path, body);
    return () => void socket.destroy();
  },
  "resets its connection": (path, body) => {
    const socket = send(path, body);
    return () => void socket.resetAndDestroy();
  },
  "aborts its fetch": (path, body) => {
    const controller = new AbortController();
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    fetch(gateway.url + path, { method: "POST", headers, body, signal: controller.signal }).catch(() => undefined);
    return () => controller.abort();
  },
};

describe.each(Object.keys(CALLS))("a client of %s", (path) => {
  it.each(Object.keys(LEAVING))("that %s before the first byte ends its call", { tags: ["slow"] }, async (kind) => {
    const requests = upstream.requests;
    const abandoned = upstream.abandoned;
    const leave = LEAVING[kind]?.(path, JSON.stringify(CALLS[path]));
    await expect.poll(() => upstream.requests).toBe(requests + 1);
    leave?.();
    await expect.poll(() => upstream.abandoned).toBe(abandoned + 1);
  });
});

it("sends an upstream no header of the local tools, nor any of the client's", async () => {
  const requests = upstream.requests;
  const socket = send("/query", JSON.stringify({ prompt: "x" }));
  await expect.poll(() => upstream.requests).toBe(requests + 1);
  socket.destroy();
  const sent = Object.keys(upstream.headers).toSorted();
  expect(sent).toEqual(["accept", "content-length", "content-type", "host", "user-agent"]);
});
