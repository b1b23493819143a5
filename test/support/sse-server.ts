/** A fake gateway that serves one run's log and cuts connections as a test defines. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";

export type SseServer = {
  url: string;
  /** `Last-Event-ID` of each request for events, "" where it had none. */
  resumedAfter: string[];
  authorizations: string[];
  stop(): Promise<void>;
};

export type Script = {
  lines: readonly string[];
  /**
   * How the connection of this number (from 0) goes on after the events that it still had to tell: how many of them it
   * tells at most, and whether it then ends, is cut off, or stays silent. By default it tells all and ends.
   */
  connection?: (number: number) => { tells?: number; last: "end" | "cut" | "stay" };
  /** Answers instead, if it returns true. */
  answer?: (request: IncomingMessage, reply: ServerResponse) => boolean;
};

export async function startSseServer({ lines, connection, answer }: Script): Promise<SseServer> {
  const resumedAfter: string[] = [];
  const authorizations: string[] = [];
  const server = createServer((request, reply) => {
    authorizations.push(request.headers.authorization ?? "");
    if (answer?.(request, reply)) return;
    if (request.url === "/run") return void sendJson(reply, 200, { id: "run_1", object: "run" });
    if (request.url === "/runs/run_1/log") {
      reply.writeHead(200, { "content-type": "application/x-ndjson" });
      return void reply.end(lines.map((line) => `${line}\n`).join(""));
    }
    if (request.url !== "/runs/run_1/events") {
      return void sendJson(reply, 404, { error: { message: "run run_0 not found", code: "not_found" } });
    }
    const after = request.headers["last-event-id"]?.toString() ?? "";
    resumedAfter.push(after);
    const { tells = lines.length, last } = connection?.(resumedAfter.length - 1) ?? { last: "end" };
    const first = Number(after || "0");
    reply.writeHead(200, { "content-type": "text/event-stream" });
    const events = lines
      .slice(first, first + tells)
      .map((line, place) => `id: ${first + place + 1}\ndata: ${line}\n\n`);
    const text = `: hello\n\n${events.join("")}`;
    if (last === "end") reply.end(text);
    else reply.write(`${text}id: 99\ndata: {"seq":`, () => void (last === "cut" && reply.socket?.destroy()));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  const stop = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  };
  return { url: `http://127.0.0.1:${address.port}`, resumedAfter, authorizations, stop };
}

function sendJson(reply: ServerResponse, status: number, body: unknown): void {
  reply.writeHead(status, { "content-type": "application/json" });
  reply.end(JSON.stringify(body));
}
