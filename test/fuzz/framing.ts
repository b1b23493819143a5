/** How the bytes of a body are sent: counted, in chunks, or wrongly. */
import type { Random } from "../../bench/adversary/random.ts";

export type Framing = {
  headers: readonly (readonly [name: string, value: string])[];
  bytes: Uint8Array;
  /** Whether the server waits for more than is sent. */
  isShort: boolean;
  /** Whether HTTP allows it. */
  isValid: boolean;
};

export function drawFraming(body: Uint8Array | null, random: Random): Framing {
  const none = { headers: [], bytes: new Uint8Array(), isShort: false, isValid: true };
  if (body === null) return none;
  const counted = ["content-length", String(body.length)] as const;
  const chunkedHeader = ["transfer-encoding", "chunked"] as const;
  const kind = random.weighted([
    ["counted", 78],
    ["chunked", 12],
    ["stops", 4],
    ["few", 2],
    ["both", 1],
    ["twice", 1],
    ["wrong", 1],
    ["bad-chunk", 1],
  ]);
  if (kind === "counted") return { ...none, headers: [counted], bytes: body };
  const chunks = chunked(body, random);
  if (kind === "chunked") return { ...none, headers: [chunkedHeader], bytes: chunks };
  if (kind === "stops") {
    const end = random.integer(0, Math.max(0, chunks.length - 6));
    if (random.chance(0.5)) return { ...none, headers: [chunkedHeader], bytes: chunks.subarray(0, end), isShort: true };
    const more = String(body.length + random.pick([1, 1_000, 100_000_000]));
    return { ...none, headers: [["content-length", more]], bytes: body, isShort: true };
  }
  // From here on HTTP itself is broken: a server that answers at all closes the connection.
  const broken = { isShort: true, isValid: false };
  if (kind === "few") return { headers: [["content-length", String(body.length >> 1)]], bytes: body, ...broken };
  if (kind === "both") return { headers: [counted, chunkedHeader], bytes: chunks, ...broken };
  if (kind === "twice") return { headers: [counted, ["content-length", "1"]], bytes: body, ...broken };
  if (kind === "wrong") {
    const length = random.pick(["-1", "abc", "1e3", "0x10", "99999999999999999999", "", "1, 2"]);
    return { headers: [["content-length", length]], bytes: body, ...broken };
  }
  const size = random.pick(["zz\r\n", "ffffffffffffffff\r\n", "-1\r\n", "5;ext=\0\r\n", "\r\n"]);
  return { headers: [chunkedHeader], bytes: Buffer.concat([Buffer.from(size), body]), ...broken };
}

function chunked(body: Uint8Array, random: Random): Uint8Array {
  const pieces: Uint8Array[] = [];
  const lengthMax = random.pick([1, 7, 1_000, 65_536]);
  // Of large bodies no million of chunks.
  const length = Math.max(lengthMax, Math.ceil(body.length / 500));
  for (let at = 0; at < body.length; at += length) {
    const piece = body.subarray(at, at + length);
    pieces.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from("\r\n"));
  }
  return Buffer.concat([...pieces, Buffer.from("0\r\n\r\n")]);
}
