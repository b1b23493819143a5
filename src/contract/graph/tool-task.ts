/** A task of a graph that calls a tool of the run: what it may have, and its call. */
import { modelOfTool } from "../../call.ts";
import { JSON_DEPTH_MAX, TOOL_CALL_BYTES_MAX } from "../../limits.ts";
import { textsIn } from "../../text/json/texts.ts";
import { SETTINGS_DEFAULT, callSettingsFields, type CallSettings, type FieldPath } from "../call-options.ts";
import { parseCall, type ParsedCall } from "../call.ts";
import { invalid, type Parsed } from "../errors.ts";
import { nestsDeeperThan, textFault, utf8Bytes } from "../text.ts";

/** The options of a call that mean something without a model. */
const TOOL_SETTINGS: ReadonlySet<string> = new Set(["priority", "timeout_ms"]);

/** The message that carries the texts of an input, behind the tool's name: what may have references. */
function messageOf(name: string, input: unknown): { role: "user"; content: { type: "text"; text: string }[] } {
  return { role: "user", content: [name, ...textsIn(input)].map((text) => ({ type: "text", text })) };
}

/** The call of a tool task. Of `settings`, which may be those of its graph, it has the urgency and the time limit. */
export function parseToolTask(
  sent: Readonly<Record<string, unknown>> & { tool: string; input?: unknown },
  settings: CallSettings,
  path: FieldPath,
): Parsed<ParsedCall> {
  const { tool: name, input = {} } = sent;
  const wrong = ["prompt", "messages", ...Object.keys(callSettingsFields())].find(
    (field) => sent[field] !== undefined && !TOOL_SETTINGS.has(field),
  );
  if (wrong !== undefined) return invalid(path(wrong), "is about a model, and the task calls a tool; leave it out");
  if (nestsDeeperThan(input, JSON_DEPTH_MAX)) {
    return invalid(path("input"), `expected at most ${JSON_DEPTH_MAX} levels of nesting`);
  }
  for (const text of textsIn(input)) {
    const fault = textFault(text);
    if (fault !== null) return invalid(path("input"), `has a text that ${fault}`);
  }
  if (utf8Bytes(JSON.stringify(input)) > TOOL_CALL_BYTES_MAX) {
    const what = path("input");
    return { ok: false, reason: { reason: "payload_too_large", what, bytesMax: TOOL_CALL_BYTES_MAX, param: what } };
  }
  const { priority, timeoutMs } = settings.dispatch;
  const dispatch = { ...SETTINGS_DEFAULT.dispatch, priority, timeoutMs, model: modelOfTool(name) };
  const call = parseCall({ messages: [messageOf(name, input)] }, { ...SETTINGS_DEFAULT, dispatch }, path);
  if (!call.ok) return call;
  return { ok: true, value: { ...call.value, body: { ...call.value.body, tool: { name, input } } } };
}
