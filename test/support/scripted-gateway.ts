/** A fake gateway with scripted replies, for faults that a client must survive and a real gateway rarely has. */
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:http";

/** A request as it arrived. */
export type Seen = { method: string; path: string; headers: IncomingMessage["headers"]; body: unknown };

export type ScriptedGateway = { url: string; seen: Seen[]; stop(): Promise<void> };

export async function startScriptedGateway(
  answer: (request: Seen, reply: ServerResponse) => unknown,
): Promise<ScriptedGateway> {
  const seen: Seen[] = [];
  const serve = async (request: IncomingMessage, reply: ServerResponse): Promise<void> => {
    let text = "";
    for await (const piece of request.setEncoding("utf8")) text += String(piece);
    const body: unknown = text === "" ? null : JSON.parse(text);
    const entry = { method: request.method ?? "", path: request.url ?? "", headers: request.headers, body };
    seen.push(entry);
    await answer(entry, reply);
  };
  // A client that ends breaks off what it was sending.
  const server = createServer((request, reply) => void serve(request, reply).catch(() => reply.destroy()));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  const stop = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  };
  return { url: `http://127.0.0.1:${address.port}`, seen, stop };
}

/** Sends a JSON answer. */
export function sendJson(reply: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}) {
  reply.writeHead(status, { "content-type": "application/json", ...headers });
  reply.end(JSON.stringify(body));
}
