/** A proxy that records requests and breaks connections as a test specifies, for clients that must tolerate that. */
import { createServer, request as send, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

/**
 * What to do with a request: let it `pass`, `drop` the connection before the gateway receives it, `deafen` the client
 * (the gateway answers, and the connection is reset before the first byte of the answer), reset (`cut`) or close (`end`)
 * the connection in the middle of the answer, answer with `garbage`, or redirect it `elsewhere`.
 */
export type Fate = "pass" | "drop" | "deafen" | "cut" | "end" | "garbage" | "elsewhere";

export type ProxiedRequest = { method: string; path: string; headers: IncomingMessage["headers"]; body: string };

export type FaultyProxy = {
  url: string;
  /** The requests in order. */
  requests: ProxiedRequest[];
  /** Requests that followed the redirect of `elsewhere`. */
  strayed: ProxiedRequest[];
  stop(): Promise<void>;
};

/** Starts a proxy to `target`. The n-th request gets the n-th fate; later ones pass. */
export async function startFaultyProxy(
  target: string,
  fates: readonly Fate[] = [],
  options: { port?: number; delayMs?: number } = {},
): Promise<FaultyProxy> {
  const requests: ProxiedRequest[] = [];
  const strayed: ProxiedRequest[] = [];
  const server = createServer((request, response) => {
    void serve(request, response).catch(() => request.socket.resetAndDestroy());
  });
  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const received = await read(request);
    const isStray = received.path.startsWith("/elsewhere");
    const fate = isStray ? "garbage" : (fates[requests.length] ?? "pass");
    (isStray ? strayed : requests).push(received);
    if (fate === "drop") return void request.socket.resetAndDestroy();
    if (fate === "garbage") return void response.end("<html>no JSON</html>");
    if (fate === "elsewhere") return void response.writeHead(307, { location: `${url}/elsewhere` }).end();
    const answer = await forwarded(target, received);
    if (fate === "pass") {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      return void answer.pipe(response);
    }
    const whole = await buffer(answer);
    if (fate === "deafen") return void request.socket.resetAndDestroy();
    const { "transfer-encoding": _, "content-length": __, ...headers } = answer.headers;
    // Both framings of an answer: a closed one lacks its last chunk, a reset one lacks part of its content-length.
    const length = fate === "end" ? {} : { "content-length": whole.length };
    response.writeHead(answer.statusCode ?? 502, { ...headers, ...length });
    // A reset may discard bytes that the client has not read yet; a close does not.
    const breakOff = (): unknown => (fate === "end" ? request.socket.end() : request.socket.resetAndDestroy());
    response.write(whole.subarray(0, whole.length / 2), breakOff);
  }
  if (options.delayMs !== undefined) await new Promise((resolve) => setTimeout(resolve, options.delayMs));
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    requests,
    strayed,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function read(request: IncomingMessage): Promise<ProxiedRequest> {
  const { method = "", url: path = "", headers } = request;
  return { method, path, headers, body: (await buffer(request)).toString("utf8") };
}

function forwarded(target: string, { method, path, headers, body }: ProxiedRequest): Promise<IncomingMessage> {
  const { "transfer-encoding": _, ...kept } = headers;
  const own = { ...kept, "content-length": String(Buffer.byteLength(body)) };
  return new Promise((resolve, reject) => {
    send(target + path, { method, headers: method === "GET" ? kept : own, agent: false }, resolve)
      .once("error", reject)
      .end(body);
  });
}
