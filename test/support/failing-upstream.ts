/**
 * An upstream that never answers well, of OpenAI's and of Anthropic's kind: the first part of a request's path says how it
 * fails. It counts its requests, so that a test sees how often a call was really made.
 */
import { createServer, type ServerResponse } from "node:http";

/** How a request fails, by the first part of its path. */
const FAILURES: Readonly<Record<string, (response: ServerResponse) => void>> = {
  hang: () => undefined,
  reset: (response) => void response.socket?.resetAndDestroy(),
  truncated: (response) => {
    response.writeHead(200, { "content-type": "application/json", "content-length": 1_000 });
    response.write(HALF, () => response.destroy());
  },
  cut: (response) => {
    response.writeHead(200, { "content-type": "application/json", "content-length": HALF.length }).end(HALF);
  },
  chunked: (response) => void response.writeHead(200, { "content-type": "application/json" }).end(HALF),
  "400": (response) => fail(response, 400),
  "408": (response) => fail(response, 408),
  "429": (response) => fail(response, 429),
  "500": (response) => fail(response, 500),
  "503": (response) => fail(response, 503),
  "504": (response) => fail(response, 504),
  "524": (response) => fail(response, 524),
  "529": (response) => fail(response, 529),
  filter: (response) => fail(response, 400, "content_filter"),
};

const HALF = '{"id":"x-1","object":"chat.completion","type":"message","choices":[{"index":0,"mess';

export type FailingUpstream = {
  /** Without a path; what follows it says how a request fails. */
  origin: string;
  /** Requests with such a failure so far. */
  asked(failure: string): number;
  stop(): Promise<void>;
};

export async function startFailingUpstream(): Promise<FailingUpstream> {
  const counts = new Map<string, number>();
  const server = createServer((request, response) => {
    const failure = request.url?.split("/")[1] ?? "";
    request.resume().once("end", () => {
      counts.set(failure, (counts.get(failure) ?? 0) + 1);
      (FAILURES[failure] ?? FAILURES["500"])?.(response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the upstream has no TCP address");
  return {
    origin: `http://127.0.0.1:${address.port}`,
    asked: (failure) => counts.get(failure) ?? 0,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function fail(response: ServerResponse, status: number, code: string | null = null): void {
  const error = { message: `failed with ${status}`, type: "x_error", param: null, code };
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ error }));
}
