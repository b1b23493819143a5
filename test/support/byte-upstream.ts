/**
 * An upstream that answers exact bytes: what is written goes out as one chunk of its own, breaks off where the test says,
 * and waits for the client's word. It understands nothing; the handler of a test does.
 */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";

/** One request as it arrived. `leftAtMs` is when its sender closed the connection before the answer's end. */
export type ByteCall = {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
  leftAtMs: number | null;
};

/** The answer to one request. */
export type ByteReply = {
  /** A whole body of announced length. */
  whole(bytes: Uint8Array | string, init?: ReplyInit): void;
  /** Status and headers now, the body in chunks. */
  begin(init?: ReplyInit): void;
  /** One chunk; resolves when the connection takes more. False when the client has left. */
  write(bytes: Uint8Array | string): Promise<boolean>;
  end(): void;
  /** Breaks the connection off. */
  reset(): void;
  /** Bytes of the answer that wait because the client reads too slowly. */
  readonly waitingBytes: number;
};

export type ReplyInit = { status?: number; headers?: Record<string, string> };

export type ByteHandler = (call: ByteCall, reply: ByteReply) => void | Promise<void>;

export type ByteUpstream = {
  /** Without a path. */
  origin: string;
  /** Requests since the start or since `forget`, in their order. */
  calls: ByteCall[];
  /** Whom requests go to from now on. */
  serve(handler: ByteHandler): void;
  forget(): void;
  stop(): Promise<void>;
};

/** Connections that may wait to be accepted. */
const BACKLOG = 4_096;

/** Starts an upstream that answers 500 until a test sets its handler. */
export async function startByteUpstream(): Promise<ByteUpstream> {
  const calls: ByteCall[] = [];
  let handle: ByteHandler = (_, reply) => reply.whole("nobody serves", { status: 500 });
  const server = createServer((request, response) => {
    received(request, response)
      .then((call) => {
        calls.push(call);
        return handle(call, replyOf(response));
      })
      .catch(() => response.destroy());
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen({ host: "127.0.0.1", port: 0, backlog: BACKLOG }, resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the upstream has no TCP address");
  return {
    origin: `http://127.0.0.1:${address.port}`,
    calls,
    serve: (handler) => void (handle = handler),
    forget: () => void (calls.length = 0),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function received(request: IncomingMessage, response: ServerResponse): Promise<ByteCall> {
  const chunks: Buffer[] = [];
  const { method = "", url = "", headers } = request;
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  const call: ByteCall = { method, path: url, headers, body: Buffer.concat(chunks), leftAtMs: null };
  response.once("close", () => {
    if (!response.writableFinished) call.leftAtMs = performance.now();
  });
  return call;
}

function replyOf(response: ServerResponse): ByteReply {
  response.socket?.setNoDelay(true);
  const begin = ({ status = 200, headers = {} }: ReplyInit = {}) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.flushHeaders();
  };
  return {
    whole: (bytes, { status = 200, headers = {} } = {}) => {
      const length = { "content-length": Buffer.byteLength(bytes) };
      response.writeHead(status, { "content-type": "application/json", ...length, ...headers });
      response.end(bytes);
    },
    begin,
    write: (bytes) => written(response, bytes),
    end: () => void response.end(),
    reset: () => void response.socket?.resetAndDestroy(),
    get waitingBytes() {
      return response.writableLength;
    },
  };
}

function written(response: ServerResponse, bytes: Uint8Array | string): Promise<boolean> {
  if (response.destroyed) return Promise.resolve(false);
  if (response.write(bytes)) return Promise.resolve(true);
  return new Promise((resolve) => {
    const done = () => {
      response.off("drain", done);
      response.off("close", done);
      resolve(!response.destroyed);
    };
    response.once("drain", done);
    response.once("close", done);
  });
}
