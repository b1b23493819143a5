/**
 * The bodies and queries of Anthropic's Message Batches. A list of requests is split without being parsed: each request is checked on
 * its own, and its `params` stay the bytes that they are.
 */
import * as z from "zod";
import { MESSAGES_URL } from "../batch/endpoints.ts";
import { BATCH_TIER } from "../call.ts";
import type { Reason } from "../errors.ts";
import {
  BATCH_LINE_BYTES_MAX,
  BATCHES_PAGE_DEFAULT,
  BATCHES_PAGE_MAX,
  MESSAGE_BATCH_ID_CHARS_MAX,
  MESSAGE_BATCH_PAGE_MAX,
  MESSAGE_BATCH_REQUESTS_MAX,
  NAME_CHARS_MAX,
  SCAN_SLICE_BYTES,
} from "../limits.ts";
import { SliceCount, type Sliced } from "../text/bytes/slices.ts";
import { keyAt } from "../text/json/key.ts";
import { member, scanObject } from "../text/json/scan.ts";
import { splitList, splittingList } from "../text/json/split-list.ts";
import { jsonOf } from "./body.ts";
import { invalid, zodReason, type Parsed } from "./errors.ts";
import { messagesBody } from "./dialects/relayed.ts";
import { atFirstUse } from "../at-first-use.ts";

const CUSTOM_ID = /^[a-zA-Z0-9_-]+$/;

/** How the requests are sent: through their provider's own batches where it sells them, or live. Anthropic's clients send no such field. */
const serviceTier = atFirstUse(() => z.enum([BATCH_TIER, "default"]).nullish());

/** `POST /v1/messages/batches` as documented. */
export const messageBatchBody = atFirstUse(() =>
  z.strictObject({
    requests: z
      .array(
        z.strictObject({
          custom_id: z.string().min(1).max(MESSAGE_BATCH_ID_CHARS_MAX).regex(CUSTOM_ID),
          params: messagesBody(),
        }),
      )
      .min(1)
      .max(MESSAGE_BATCH_REQUESTS_MAX),
    service_tier: serviceTier(),
  }),
);

/** The same without its list. */
const envelope = atFirstUse(() => z.strictObject({ requests: z.array(z.unknown()), service_tier: serviceTier() }));

/** A request of a batch. `params`: its JSON as it came, a view of the body. */
export type MessageRequest = { customId: string; params: Uint8Array };

export type MessageBatch = { requests: readonly MessageRequest[]; isLive: boolean };

/**
 * A body as a batch, or the first reason to refuse it. `params` are not checked further than that they are an object: what is wrong with
 * them is the result of their request.
 */
export function* messageBatchReading(bytes: Uint8Array): Sliced<Parsed<MessageBatch>> {
  // Elements are one piece each, for the name of the one that is refused.
  const options = { fields: ["requests"], elementsMax: MESSAGE_BATCH_REQUESTS_MAX, pieceBytesMin: 0 };
  const list = yield* splittingList(bytes, { ...options, sliceBytes: SCAN_SLICE_BYTES });
  if (list === null) return notAList(bytes);
  yield;
  const rest = jsonOf(list.envelope);
  if (!rest.ok) return rest;
  const read = envelope().safeParse(rest.value);
  if (!read.success) return { ok: false, reason: zodReason(read.error) };
  const requests: MessageRequest[] = [];
  const ids = new Set<string>();
  const slice = new SliceCount();
  for (const piece of list.pieces) {
    const index = requests.length;
    const request = list.pieces.length === 1 && isBlank(piece) ? EMPTY : readRequest(piece, index);
    if (!request.ok) return request;
    const { customId } = request.value;
    if (ids.has(customId)) return invalid(`requests[${index}].custom_id`, "expected an id that no earlier request has");
    ids.add(customId);
    requests.push(request.value);
    if (slice.add(piece.length)) yield;
  }
  return { ok: true, value: { requests, isLive: read.data.service_tier === "default" } };
}

const EMPTY = invalid("requests", `expected a list of 1 to ${MESSAGE_BATCH_REQUESTS_MAX} requests`);

/** Why a body has no list that can be split: it is no JSON, has no list, or more in it than are accepted. */
function notAList(bytes: Uint8Array): { ok: false; reason: Reason } {
  const long = splitList(bytes, { fields: ["requests"], elementsMax: Infinity, pieceBytesMin: Infinity });
  const body = long === null ? jsonOf(bytes) : EMPTY;
  return body.ok ? EMPTY : body;
}

function isBlank(piece: Uint8Array): boolean {
  return piece.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d);
}

function readRequest(piece: Uint8Array, index: number): Parsed<MessageRequest> {
  const at = `requests[${index}]`;
  const scan = scanObject(piece);
  if (!scan.ok) return invalid(at, scan.problem);
  const { object } = scan;
  if (object.duplicate !== null) return invalid(`${at}.${object.duplicate}`, "expected once");
  const unknown = object.members.find(({ name }) => name !== "custom_id" && name !== "params");
  if (unknown !== undefined) return invalid(`${at}.${unknown.name}`, "expected custom_id and params only");
  const id = member(object, "custom_id");
  const customId = id?.kind === "text" ? keyAt(piece, id.start + 1, id.end - 1) : "";
  if (!CUSTOM_ID.test(customId) || customId.length > MESSAGE_BATCH_ID_CHARS_MAX) {
    const expected = `expected 1 to ${MESSAGE_BATCH_ID_CHARS_MAX} letters, digits, hyphens and underscores`;
    return invalid(`${at}.custom_id`, expected);
  }
  const params = member(object, "params");
  if (params?.kind !== "object") return invalid(`${at}.params`, "expected a JSON object");
  if (params.end - params.start > BATCH_LINE_BYTES_MAX - ENVELOPE_BYTES_MAX) {
    return invalid(`${at}.params`, `expected at most ${BATCH_LINE_BYTES_MAX - ENVELOPE_BYTES_MAX} bytes`);
  }
  return { ok: true, value: { customId, params: piece.subarray(params.start, params.end) } };
}

/** Most bytes of a line beside its body. */
const ENVELOPE_BYTES_MAX = 256;

const encoder = new TextEncoder();
const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;

/** A request as a line of a batch's input, with its line feed. */
export function inputLine({ customId, params }: MessageRequest): Uint8Array {
  const head = encoder.encode(`{"custom_id":"${customId}","method":"POST","url":"${MESSAGES_URL}","body":`);
  const line = new Uint8Array(head.length + params.length + 2);
  line.set(head);
  line.set(params, head.length);
  // In JSON they are white space between tokens: within a text each is an escape.
  for (let at = head.length; at < line.length; at++) if (line[at] === LF || line[at] === CR) line[at] = SPACE;
  line.set([0x7d, LF], line.length - 2);
  return line;
}

const cursor = z.string().min(1).max(NAME_CHARS_MAX).optional();
const pageQuery = atFirstUse(() =>
  z.object({
    limit: z.coerce.number().int().min(1).max(MESSAGE_BATCH_PAGE_MAX).default(BATCHES_PAGE_DEFAULT),
    after_id: cursor,
    before_id: cursor,
  }),
);

/** One page of the list: behind `after`, or before `before`. */
export type MessageBatchesQuery = { limit: number; after: string | null; before: string | null };

/** The query of `GET /v1/messages/batches`. A page has at most `BATCHES_PAGE_MAX` batches: clients go on by its last one. */
export function parseMessageBatchesQuery(query: Readonly<Record<string, string>>): Parsed<MessageBatchesQuery> {
  const read = pageQuery().safeParse(query);
  if (!read.success) return { ok: false, reason: zodReason(read.error) };
  const { limit, after_id: after = null, before_id: before = null } = read.data;
  if (after !== null && before !== null) return invalid("before_id", "is set together with after_id");
  return { ok: true, value: { limit: Math.min(limit, BATCHES_PAGE_MAX), after, before } };
}
