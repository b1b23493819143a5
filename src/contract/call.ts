/**
 * From the wire to a call: what is asked (`CallBody`, stored and sent) and what dispatch must know of it (`CallFacts`).
 * Runs once per slot of a batch, so it is written by hand: bytes are counted without copies, and text that does not
 * need a closer look is not looked at twice.
 */
import type { CallBody, CallFacts } from "../call.ts";
import type { Reason } from "../errors.ts";
import { JSON_DEPTH_MAX, PARAMS_ENTRIES_MAX, PROMPT_BYTES_MAX } from "../limits.ts";
import { RESERVED_PARAMS } from "../upstream/request.ts";
import type { Parsed } from "./errors.ts";
import { invalid } from "./errors.ts";
import type { CallSettingsInput, ContentInput } from "./fields.ts";
import { priorityOf } from "./fields.ts";
import { mediaPartsOf, messagesFault } from "./messages.ts";
import { nestsDeeperThan, textFault, utf8Bytes } from "./text.ts";

/** A call ready to be stored. */
export type ParsedCall = { body: CallBody; facts: CallFacts };

/** Names a field of the call being parsed from the root of the request: `"system"` → `"items[3].system"`. */
export type Place = (field: string) => string;

/** Settings with their sizes, shared by every call that does not override them. */
export type CallSettings = Omit<CallFacts, "promptBytes" | "messageCount" | "mediaParts"> & {
  system: string | null;
  temperature: number | null;
  params: Record<string, unknown> | null;
  /** UTF-8 bytes of `system`, and of it as JSON text. */
  systemSize: Size;
  /** UTF-8 bytes of `params` as JSON. */
  paramsBytes: number;
};

type Size = { textBytes: number; jsonBytes: number };

/** What holds where neither the call nor the request says anything. */
export const SETTINGS_DEFAULT: CallSettings = {
  model: null,
  maxTokens: null,
  priority: 2,
  timeoutMs: null,
  system: null,
  temperature: null,
  params: null,
  systemSize: { textBytes: 0, jsonBytes: 0 },
  paramsBytes: 0,
};

/** Lays the settings that a request or an item names over those it inherits; `params` are merged entry by entry. */
export function parseSettings(input: CallSettingsInput, base: CallSettings, place: Place): Parsed<CallSettings> {
  const settings: CallSettings = {
    ...base,
    model: input.model ?? base.model,
    maxTokens: input.max_tokens ?? base.maxTokens,
    priority: input.priority === undefined ? base.priority : priorityOf(input.priority),
    timeoutMs: input.timeout_ms ?? base.timeoutMs,
    temperature: input.temperature ?? base.temperature,
  };
  if (input.system !== undefined) {
    const fault = textFault(input.system);
    if (fault !== null) return invalid(place("system"), fault);
    settings.system = input.system;
    settings.systemSize = sizeOf(input.system);
  }
  if (input.params !== undefined) {
    const params = { ...base.params, ...input.params };
    const fault = paramsFault(params, place);
    if (fault !== null) return fault;
    settings.params = params;
    settings.paramsBytes = utf8Bytes(JSON.stringify(params));
  }
  return { ok: true, value: settings };
}

/** One call under its settings. Refuses a content that is missing, doubled, malformed or too large to store. */
export function parseCall(input: ContentInput, settings: CallSettings, place: Place): Parsed<ParsedCall> {
  const { prompt, messages } = input;
  if (prompt !== undefined && messages !== undefined) {
    return invalid(place("messages"), "give either prompt or messages, not both");
  }
  const body: CallBody = {};
  let size: Size;
  let mediaParts = 0;
  if (prompt !== undefined) {
    const fault = textFault(prompt);
    if (fault !== null) return invalid(place("prompt"), fault);
    body.prompt = prompt;
    size = sizeOf(prompt);
  } else if (messages !== undefined) {
    const fault = messagesFault(messages, place);
    if (fault !== null) return fault;
    body.messages = messages;
    const media = mediaPartsOf(messages);
    mediaParts = media.length;
    const bytes = utf8Bytes(JSON.stringify(messages));
    const mediaBytes = media.reduce<number>((sum, part) => sum + utf8Bytes(JSON.stringify(part)), 0);
    size = { textBytes: bytes - mediaBytes, jsonBytes: bytes };
  } else {
    return invalid(place("prompt"), "is missing; expected prompt (a text) or messages (an array)");
  }
  if (size.jsonBytes + settings.systemSize.jsonBytes + settings.paramsBytes > PROMPT_BYTES_MAX) {
    return tooLarge(place(prompt === undefined ? "messages" : "prompt"));
  }
  if (settings.system !== null) body.system = settings.system;
  if (settings.temperature !== null) body.temperature = settings.temperature;
  if (settings.params !== null) body.params = settings.params;
  return { ok: true, value: { body, facts: { ...factsOf(messages?.length ?? 1, size, settings), mediaParts } } };
}

function factsOf(messageCount: number, size: Size, settings: CallSettings): Omit<CallFacts, "mediaParts"> {
  return {
    promptBytes: size.textBytes + settings.systemSize.textBytes + settings.paramsBytes,
    messageCount: messageCount + (settings.system === null ? 0 : 1),
    model: settings.model,
    maxTokens: settings.maxTokens,
    priority: settings.priority,
    timeoutMs: settings.timeoutMs,
  };
}

/** JSON writes a character in at most six bytes per byte of UTF-8, so only a large text is measured as JSON. */
function sizeOf(text: string): Size {
  const textBytes = text.length > PROMPT_BYTES_MAX ? text.length : utf8Bytes(text);
  const mayNotFit = textBytes * 6 > PROMPT_BYTES_MAX && textBytes <= PROMPT_BYTES_MAX;
  return { textBytes, jsonBytes: mayNotFit ? utf8Bytes(JSON.stringify(text)) - 2 : textBytes };
}

function paramsFault(params: Record<string, unknown>, place: Place) {
  const names = Object.keys(params);
  if (names.length > PARAMS_ENTRIES_MAX)
    return invalid(place("params"), `expected at most ${PARAMS_ENTRIES_MAX} entries`);
  for (const name of names) {
    const why = RESERVED_PARAMS.get(name);
    if (why !== undefined) return invalid(place(`params.${name}`), `cannot be passed on. ${why}`);
  }
  const fault = toolsFault(params["tools"], place);
  if (fault !== null) return fault;
  return nestsDeeperThan(params, JSON_DEPTH_MAX)
    ? invalid(place("params"), `expected at most ${JSON_DEPTH_MAX} levels of nesting`)
    : null;
}

/** Tools that the provider itself runs, such as a web search, are billed per use: no reservation covers that. */
function toolsFault(tools: unknown, place: Place) {
  if (!Array.isArray(tools)) return null;
  for (const [index, tool] of tools.entries()) {
    const type: unknown = typeof tool === "object" && tool !== null && "type" in tool ? tool.type : undefined;
    if (type !== "function" && type !== "custom") {
      return invalid(
        place(`params.tools[${index}].type`),
        "expected function or custom: tools of the provider are not priced",
      );
    }
  }
  return null;
}

function tooLarge(param: string): { ok: false; reason: Reason } {
  return { ok: false, reason: { reason: "payload_too_large", what: param, bytesMax: PROMPT_BYTES_MAX, param } };
}
