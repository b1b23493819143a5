/** `/cassettes`: the operator lists tapes, reads one as a file, loads a file, and empties one. */
import type { Context } from "hono";
import { cassetteOf } from "../../objects/address.ts";
import type { AppEnv } from "../context.ts";
import { mediaType, readBytes } from "../../contract/body.ts";
import { parseTape, type CassetteDocument } from "../../contract/operator/cassettes.ts";
import { quoted, Refusal } from "../../errors.ts";
import { CASSETTE_BYTES_MAX, CASSETTE_PAGE_CHARS } from "../../limits.ts";
import type { TapeLine } from "../../objects/methods/cassette-api.ts";
import { sha256Hex } from "../../objects/clients/dedupe-key.ts";
import { bodyRoom } from "../body-bound.ts";
import type { Handlers } from "../handler.ts";

const JSON_LINES = "application/x-ndjson";

/** Under which names clients send such a file: one of a single line is JSON. */
const FILE_TYPES: ReadonlySet<string> = new Set([JSON_LINES, "application/jsonl", "application/json", "text/plain"]);

export const cassetteHandlers = {
  "GET /cassettes": async (c) => {
    const data = await Promise.all(tapesOf(c).map((tape) => documentOf(c, tape)));
    return c.json({ object: "list", data });
  },
  "GET /cassettes/:tape": async (c) => c.json(await documentOf(c, requireTape(c))),
  "GET /cassettes/:tape/exchanges": (c) => {
    const tape = requireTape(c);
    return new Response(fileOf(c, tape), { headers: { "content-type": JSON_LINES } });
  },
  "PUT /cassettes/:tape": load,
  "DELETE /cassettes/:tape": async (c) => {
    const tape = requireTape(c);
    await cassetteOf(c.env, tape).clear();
    return c.json(await documentOf(c, tape));
  },
} satisfies Partial<Handlers>;

/** The tapes that the configuration names. No others are reached, so that a request makes no object. */
function tapesOf(c: Context<AppEnv>): string[] {
  const { upstreams } = c.get("config");
  return [...new Set(upstreams.flatMap(({ cassette }) => (cassette === undefined ? [] : [cassette.tape])))];
}

function requireTape(c: Context<AppEnv>): string {
  const tape = c.req.param("tape") ?? "";
  if (tapesOf(c).includes(tape)) return tape;
  const hint = "an upstream of the kind cassette in UPSTREAMS names each tape";
  throw new Refusal({ reason: "not_found", what: `cassette ${quoted(tape)}`, hint });
}

async function documentOf(c: Context<AppEnv>, tape: string): Promise<CassetteDocument> {
  const { recordedAtMs, lastMisses: last_misses, ...counts } = await cassetteOf(c.env, tape).facts();
  const upstreams = c
    .get("config")
    .upstreams.flatMap(({ name, cassette }) => (cassette?.tape === tape ? [{ name, mode: cassette.mode }] : []));
  const recorded_at = recordedAtMs === null ? null : new Date(recordedAtMs).toISOString();
  return { object: "cassette", tape, upstreams, ...counts, last_misses, recorded_at };
}

/** All exchanges as lines, page by page. */
function fileOf(c: Context<AppEnv>, tape: string): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let from = 1;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const lines = await cassetteOf(c.env, tape).lines(from);
      if (lines.length === 0) return controller.close();
      from += lines.length;
      controller.enqueue(encoder.encode(`${lines.join("\n")}\n`));
    },
  });
}

/** Replaces a tape by a file. The whole file is checked before the tape is touched. */
async function load(c: Context<AppEnv>): Promise<Response> {
  const type = mediaType(c.req.raw);
  if (type !== "" && !FILE_TYPES.has(type)) {
    throw new Refusal({ reason: "unsupported_media_type", got: type, expected: JSON_LINES });
  }
  const body = await readBytes(c.req.raw, bodyRoom(c));
  if (!body.ok) throw new Refusal(body.reason);
  const tape = requireTape(c);
  const read = parseTape(body.value);
  if (!read.ok) throw new Refusal(read.reason);
  const object = cassetteOf(c.env, tape);
  let portion: TapeLine[] = [];
  let chars = 0;
  let isFirst = true;
  const send = async (): Promise<void> => {
    const isLoaded = await object.load(portion, isFirst);
    if (!isLoaded) {
      throw new Refusal({ reason: "payload_too_large", what: "the tape", bytesMax: CASSETTE_BYTES_MAX, param: null });
    }
    portion = [];
    chars = 0;
    isFirst = false;
  };
  for (const { line, text, key } of read.value) {
    portion.push({ line, text, key: key ?? (await sha256Hex(new TextEncoder().encode(text))) });
    chars += line.length + text.length;
    if (chars >= CASSETTE_PAGE_CHARS) await send();
  }
  if (portion.length > 0 || isFirst) await send();
  return c.json(await documentOf(c, tape));
}
