/** Sends bytes over a connection of their own and reads the answer as HTTP/1.1 has it. No client library sends what is wrong. */
import { connect, type Socket } from "node:net";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import type { HostileRequest } from "./request.ts";

export type Answer = {
  status: number;
  headers: ReadonlyMap<string, string>;
  /** Decoded from its chunks; of a WebSocket, all that came. */
  body: Buffer;
  /** Whether all of it has arrived. */
  isWhole: boolean;
};

/** `left`: the client did not wait any longer. `closed`: the connection ended without an answer. */
export type Exchange = { kind: "answer"; answer: Answer } | { kind: "left" | "closed" };

export type Patience = {
  /** How long the client waits for an answer, ms. */
  answerMs: number;
  /** How long it waits where an answer may take as long as it likes, or cannot come, ms. */
  waitMs: number;
};

/** Sends a request and waits for its answer, or for as long as the client has patience. */
export async function exchange(url: string, request: HostileRequest, patience: Patience): Promise<Exchange> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  const pieces: Buffer[] = [];
  let hasUpgraded = false;
  const isHasty = request.mayWait || request.ending !== "waits" || !request.isHttp || request.frames !== null;
  const ended = new Promise<boolean>((resolve) => {
    const leave = setTimeout(() => resolve(false), isHasty ? patience.waitMs : patience.answerMs);
    socket.on("data", (piece: Buffer) => {
      pieces.push(piece);
      if (request.frames === null || hasUpgraded || !piece.toString("latin1").startsWith("HTTP/1.1 101")) return;
      hasUpgraded = true;
      socket.write(request.frames);
    });
    // A connection that breaks is an answer, too.
    socket.once("error", () => undefined);
    socket.once("close", () => {
      clearTimeout(leave);
      resolve(true);
    });
  });
  await written(socket, request);
  const hasEnded = await ended;
  socket.resetAndDestroy();
  const answer = answerIn(Buffer.concat(pieces), request.method);
  if (answer !== null) return { kind: "answer", answer };
  return { kind: hasEnded ? "closed" : "left" };
}

async function written(socket: Socket, { bytes, ending }: HostileRequest): Promise<void> {
  await new Promise<void>((resolve) => {
    socket.once("close", resolve);
    socket.write(bytes, () => resolve());
  });
  if (ending === "resets") socket.resetAndDestroy();
}

/** The answer in what has arrived; null if its head has not. Interim answers are skipped. */
export function answerIn(bytes: Buffer, method: string): Answer | null {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0) return null;
  const [first = "", ...lines] = bytes.subarray(0, end).toString("latin1").split("\r\n");
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(first)?.[1] ?? Number.NaN);
  const rest = bytes.subarray(end + 4);
  if (status === 100) return answerIn(rest, method);
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(":");
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1).trim();
    headers.set(name, headers.has(name) ? `${headers.get(name)}, ${value}` : value);
  }
  const { body, isWhole } = bodyIn(rest, { status, headers, method });
  const plain = isWhole ? plainBody(body, headers.get("content-encoding")) : null;
  return { status, headers, body: plain ?? body, isWhole: plain !== null };
}

/** Miniflare compresses answers for clients that accept it. Null: the body is not what its header says, or not all of it. */
function plainBody(body: Buffer, encoding: string | undefined): Buffer | null {
  if (body.length === 0 || encoding === undefined) return body;
  try {
    return encoding === "br" ? brotliDecompressSync(body) : encoding === "gzip" ? gunzipSync(body) : body;
  } catch {
    return null;
  }
}

type Head = { status: number; headers: ReadonlyMap<string, string>; method: string };

function bodyIn(rest: Buffer, { status, headers, method }: Head): { body: Buffer; isWhole: boolean } {
  if (method === "HEAD" || status === 204 || status === 304) return { body: Buffer.alloc(0), isWhole: true };
  if (headers.get("transfer-encoding") === "chunked") return dechunked(rest);
  const length = headers.get("content-length");
  return { body: rest, isWhole: length === undefined || rest.length >= Number(length) };
}

function dechunked(rest: Buffer): { body: Buffer; isWhole: boolean } {
  const pieces: Buffer[] = [];
  for (let at = 0; ;) {
    const end = rest.indexOf("\r\n", at);
    const size = end < 0 ? Number.NaN : Number.parseInt(rest.subarray(at, end).toString("latin1"), 16);
    if (Number.isNaN(size)) return { body: Buffer.concat(pieces), isWhole: false };
    if (size === 0) return { body: Buffer.concat(pieces), isWhole: true };
    pieces.push(rest.subarray(end + 2, end + 2 + size));
    at = end + 2 + size + 2;
  }
}
