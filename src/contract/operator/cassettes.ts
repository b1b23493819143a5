/** `/cassettes`: the tapes that the configuration names, and the lines of the file that a tape is exported to. */
import * as z from "zod";
import { requestText } from "../../recordings/request.ts";
import { CASSETTE_MODES, type Exchange } from "../../recordings/types.ts";
import { CASSETTE_CUT_CHARS, CASSETTE_EXCHANGES_MAX, CASSETTE_LINE_BYTES_MAX, NAME_CHARS_MAX } from "../../limits.ts";
import { jsonOf } from "../body.ts";
import { invalid, zodReason, type Parsed } from "../errors.ts";
import { atFirstUse } from "../../at-first-use.ts";

export const cassetteDocument = atFirstUse(() =>
  z
    .object({
      object: z.literal("cassette"),
      tape: z.string(),
      upstreams: z
        .array(z.object({ name: z.string(), mode: z.enum(CASSETTE_MODES) }))
        .meta({ description: "The upstreams with this tape" }),
      exchanges: z.int().meta({ description: "Recorded calls" }),
      bytes: z.int().meta({ description: "Bytes of the file that it is exported to" }),
      unrecorded: z.int().meta({ description: "Answers that were too long, or came when the tape was full" }),
      misses: z.int().meta({ description: "Requests without an answer on the tape, since it was emptied or loaded" }),
      last_misses: z.array(z.string()).meta({ description: "The error messages of the last of them" }),
      recorded_at: z.iso.datetime().nullable(),
    })
    .meta({ id: "Cassette" }),
);
export type CassetteDocument = z.infer<ReturnType<typeof cassetteDocument>>;

export const cassetteList = atFirstUse(() =>
  z.object({ object: z.literal("list"), data: z.array(cassetteDocument()) }).meta({ id: "CassetteList" }),
);

const request = atFirstUse(() =>
  z.strictObject({
    endpoint: z.enum(["call", "chat", "completions", "embeddings", "responses", "messages"]),
    model: z.string().max(NAME_CHARS_MAX),
    headers: z.record(z.string(), z.string()).optional(),
    query: z.string().optional(),
    body: z.record(z.string(), z.unknown()),
  }),
);

const answer = atFirstUse(() =>
  z.strictObject({
    status: z.int().min(200).max(499),
    contentType: z
      .string()
      .max(NAME_CHARS_MAX)
      .regex(/^[\x20-\x7e]*$/),
    chunks: z.array(z.string()),
  }),
);

const cut = atFirstUse(() =>
  z.strictObject({
    model: z.string().max(NAME_CHARS_MAX),
    text: z.string().max(CASSETTE_CUT_CHARS),
    key: z.string().regex(/^[0-9a-f]{64}$/),
  }),
);

const exchange = atFirstUse(() =>
  z.union(
    [z.strictObject({ request: request(), answer: answer() }), z.strictObject({ cut: cut(), answer: answer() })],
    {
      error: "expected request (an object) or cut, and answer with status, contentType and chunks",
    },
  ),
);

/** A line of a tape's file. `key`: of a request that is not whole; null = it is to be computed from `text`. */
export type ReadLine = { line: string; text: string; key: string | null };

/** Reads the file of a tape, whose lines people may have edited. Names the first wrong one. */
export function parseTape(bytes: Uint8Array): Parsed<ReadLine[]> {
  const lines: ReadLine[] = [];
  let number = 0;
  for (let start = 0; start < bytes.length;) {
    const lf = bytes.indexOf(LF, start);
    const end = lf === -1 ? bytes.length : lf;
    const part = bytes.subarray(start, end);
    start = end + 1;
    number += 1;
    if (part.every((byte) => byte === SPACE || byte === CR)) continue;
    const read = parseLine(part);
    if (!read.ok) {
      const { reason } = read;
      if (reason.reason !== "invalid_request") return read;
      const problem = reason.message.replace(/^the body:? /, "");
      return invalid(`line ${number}`, problem);
    }
    lines.push(read.value);
    if (lines.length > CASSETTE_EXCHANGES_MAX) return invalid(null, `has more than ${CASSETTE_EXCHANGES_MAX} lines`);
  }
  return { ok: true, value: lines };
}

function parseLine(bytes: Uint8Array): Parsed<ReadLine> {
  if (bytes.length > CASSETTE_LINE_BYTES_MAX) return invalid(null, `is longer than ${CASSETTE_LINE_BYTES_MAX} bytes`);
  const json = jsonOf(bytes);
  if (!json.ok) return json;
  const read = exchange().safeParse(json.value);
  if (!read.success) return { ok: false, reason: zodReason(read.error) };
  const { data } = read;
  if ("cut" in data) return { ok: true, value: { line: JSON.stringify(data), text: data.cut.text, key: data.cut.key } };
  const { headers, query, ...rest } = data.request;
  const whole = {
    ...rest,
    ...(headers === undefined ? {} : { headers }),
    ...(query === undefined ? {} : { query }),
  };
  const kept: Exchange = { request: whole, answer: data.answer };
  return { ok: true, value: { line: JSON.stringify(kept), text: requestText(whole), key: null } };
}

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
