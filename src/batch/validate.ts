/**
 * Reads one line of a batch's file: the range of its body, which is sent unchanged, and the facts for admission; or its
 * first fault. As in OpenAI's API the envelope is checked first, then the URL, then the body.
 */
import { CUSTOM_ID_CHARS_MAX } from "../limits.ts";
import { keyAt } from "../text/json/key.ts";
import { readRequest, type Endpoint, type RequestFacts } from "../providers/formats/request/read.ts";
import { member, readObject, scanObject, type JsonMember, type JsonObject } from "../text/json/scan.ts";
import { batchEndpoint, type LineUrl } from "./endpoints.ts";
import {
  LINE_TOO_LONG,
  missingField,
  missingInBody,
  NO_MODEL,
  NOT_AN_OBJECT,
  NOT_JSON,
  streamed,
  unknownModel,
  WRONG_URL,
  type LineFault,
} from "./line-error.ts";
import { charsOf, tooLong, unsupported, wrongType } from "./refusal.ts";

/** A line that can be run. */
export type BatchLine = {
  customId: string;
  endpoint: Endpoint;
  /** The range of the body in the line's bytes. */
  bodyStart: number;
  bodyEnd: number;
  /** The model as named, or the default. */
  model: string;
  /** The indexes in its `object` are within the body, not within the line. */
  facts: RequestFacts;
};

/** The rules that a line must comply with. */
export type LineRules = {
  /** The batch's endpoint. */
  url: LineUrl;
  /** The model of a body that names none; null = such a body is refused. */
  defaultModel: string | null;
  /** Whether an upstream of this gateway serves the model at this endpoint, and the run may use it. */
  serves: (model: string) => boolean;
};

/** `customId`: of a line whose envelope is right. */
export type LineReading = { ok: true; value: BatchLine } | { ok: false; fault: LineFault; customId?: string };

/** Reads a line; `bytes` null = it was too long to be kept. The rules for all lines together are in `BatchCheck`. */
export function readLine(bytes: Uint8Array | null, rules: LineRules): LineReading {
  if (bytes === null) return fail(LINE_TOO_LONG);
  const scan = scanObject(bytes);
  if (!scan.ok) return fail(scan.problem.startsWith("is not JSON") ? NOT_JSON : NOT_AN_OBJECT);
  const envelope = readEnvelope(bytes, scan.object, rules.url);
  if (!envelope.ok) return envelope;
  const { customId, body } = envelope.value;
  const read = readBody(bytes, body, rules);
  return read.ok ? { ok: true, value: { ...read.value, customId } } : { ...read, customId };
}

function readBody(
  bytes: Uint8Array,
  body: JsonMember,
  rules: LineRules,
): { ok: true; value: Omit<BatchLine, "customId"> } | { ok: false; fault: LineFault } {
  const { endpoint, title } = batchEndpoint(rules.url);
  const request = readRequest(endpoint, bytes.subarray(body.start, body.end));
  if (!request.ok) return fail(bodyFault(bytes, body, request.reason));
  const facts = request.value;
  if (facts.stream) return fail(streamed(title));
  const model = facts.model ?? rules.defaultModel;
  if (model === null) return fail(NO_MODEL);
  if (!rules.serves(model)) return fail(unknownModel(model));
  return { ok: true, value: { endpoint, bodyStart: body.start, bodyEnd: body.end, model, facts } };
}

type Envelope = { customId: string; body: JsonMember };

function readEnvelope(
  bytes: Uint8Array,
  object: JsonObject,
  url: LineUrl,
): { ok: true; value: Envelope } | { ok: false; fault: LineFault } {
  const twice = object.duplicate;
  if (twice !== null) {
    return fail({ code: "invalid_request", message: `'${twice}' occurs more than once in this line.`, param: twice });
  }
  const customId = textAt(bytes, object, "custom_id");
  if (!customId.ok) return customId;
  if (charsOf(customId.value) > CUSTOM_ID_CHARS_MAX) {
    return fail(coded(tooLong("custom_id", customId.value, CUSTOM_ID_CHARS_MAX)));
  }
  const method = textAt(bytes, object, "method");
  if (!method.ok) return method;
  if (method.value !== "POST") return fail(coded(unsupported("method", method.value, ["POST"])));
  const requested = textAt(bytes, object, "url");
  if (!requested.ok) return requested;
  const body = member(object, "body");
  if (body === null || body.kind === "null") return fail(missingField("body"));
  if (body.kind !== "object") return fail(coded(wrongType("body", "an object", sampleOf(body))));
  if (requested.value !== url) return fail(WRONG_URL);
  return { ok: true, value: { customId: customId.value, body } };
}

function textAt(
  bytes: Uint8Array,
  object: JsonObject,
  name: string,
): { ok: true; value: string } | { ok: false; fault: LineFault } {
  const found = member(object, name);
  if (found === null || found.kind === "null") return fail(missingField(name));
  if (found.kind !== "text") return fail(coded(wrongType(name, "a string", sampleOf(found))));
  return { ok: true, value: keyAt(bytes, found.start + 1, found.end - 1) };
}

/** A sample value of each kind, because messages name the kind of a value. */
function sampleOf({ kind }: JsonMember): unknown {
  switch (kind) {
    case "object":
      return {};
    case "array":
      return [];
    case "number":
      return 0;
    case "boolean":
      return true;
    case "text":
      return "";
    case "null":
      return null;
  }
}

/** Fields of a body for which OpenAI has a message if they are missing. */
const REQUIRED = new Set(["messages", "input"]);

function bodyFault(
  bytes: Uint8Array,
  body: JsonMember,
  reason: { reason: string; message?: string; param?: string | null },
): LineFault {
  const param = reason.param ?? null;
  if (param !== null && REQUIRED.has(param)) {
    const object = readObject(bytes, body.start);
    if (object !== null && member(object, param) === null) return missingInBody(param);
  }
  return {
    code: "invalid_request",
    message: `Invalid body: ${reason.message ?? reason.reason}`,
    param: param === null ? "body" : `body.${param}`,
  };
}

function coded({ message, param, code }: { message: string; param: string | null; code: string | null }): LineFault {
  return { code: code ?? "invalid_request", message, param };
}

function fail(fault: LineFault): { ok: false; fault: LineFault } {
  return { ok: false, fault };
}
