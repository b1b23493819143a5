/** Distinguishes tools that the client runs from tools that the provider runs and bills by use. */
import { SliceCount, type Sliced } from "../../../text/bytes/slices.ts";
import { valueEnd } from "../../../text/json/grammar.ts";
import {
  firstElement,
  kindAt,
  member,
  nextElement,
  type JsonMember,
  type JsonObject,
} from "../../../text/json/scan.ts";
import { SPENDS_ALL } from "./field-table.ts";
import { readFields } from "./fields.ts";
import { TOOL, TOOL_NAMESPACE } from "./inner-fields.ts";
import { noteUnreservable, objectAt, refuse, shortName, textOf, type ScanContext } from "./scan-context.ts";

/** Types of tools that the client describes and runs itself. */
const CLIENT_TOOLS = new Set(["function", "custom"]);

/**
 * Tools that Anthropic defines and the client runs. The provider adds their descriptions, documented with 245 to 735
 * tokens; a thousand is reserved for each.
 */
const DEFINED_TOOL = /^(bash|text_editor|computer|memory)_\d{8}$/;
const DEFINED_TOOL_TOKENS = 1_000;

/** Functions and custom tools under one name, in the Responses API: the namespace itself runs nothing. */
const NAMESPACE = "namespace";

/**
 * Reads `tools`, in slices, and notes those that the provider runs. `typeRequired`: whether a tool without a type counts as one of them:
 * for Anthropic it is the client's; elsewhere only a tool with Anthropic's `input_schema` is.
 */
export function* readTools(scan: ScanContext, tools: JsonMember, typeRequired: boolean): Sliced<void> {
  const slice = new SliceCount();
  for (const { tool, field } of toolsIn(scan, tools, "tools")) {
    if (textOf(scan, member(tool, "type")) === NAMESPACE) readNamespace(scan, tool, field);
    else readTool(scan, tool, field, typeRequired);
    if (slice.add(tool.end - tool.start)) yield;
  }
}

/** The tools of a list, with their paths, up to the first refusal. */
function* toolsIn(
  scan: ScanContext,
  tools: JsonMember,
  path: string,
): Generator<{ tool: JsonObject; field: string }, void, void> {
  if (tools.kind === "null") return;
  if (tools.kind !== "array") return refuse(scan, path, "expected an array");
  const { bytes } = scan;
  let index = 0;
  for (let at = firstElement(bytes, tools.start); at !== -1 && scan.refusal === null; index++) {
    scan.tools = true;
    const field = `${path}[${index}]`;
    const tool = objectAt(scan, { kind: kindAt(bytes, at), start: at, end: at }, field);
    if (tool !== null) yield { tool, field };
    at = nextElement(bytes, tool?.end ?? valueEnd(bytes, at));
  }
}

/** A namespace holds no other one: inside it, that type is one that the gateway does not know. */
function readNamespace(scan: ScanContext, namespace: JsonObject, field: string): void {
  readFields(scan, namespace, TOOL_NAMESPACE, field);
  const tools = member(namespace, "tools");
  if (tools === null) return;
  for (const { tool, field: inner } of toolsIn(scan, tools, `${field}.tools`)) readTool(scan, tool, inner, true);
}

function readTool(scan: ScanContext, tool: JsonObject, field: string, typeRequired: boolean): void {
  const typeField = member(tool, "type");
  const type = textOf(scan, typeField);
  if (type !== null && DEFINED_TOOL.test(type)) scan.promptTokenIds += DEFINED_TOOL_TOKENS;
  else if (typeField === null ? typeRequired && member(tool, "input_schema") === null : !CLIENT_TOOLS.has(type ?? "")) {
    const allowedBy = type === null ? null : `tools.${shortName(type)}`;
    return noteUnreservable(scan, { field: `${field}.type`, why: HOSTED, spends: SPENDS_ALL, allowedBy });
  }
  readFields(scan, tool, TOOL, field);
}

const HOSTED = "Tools of the provider are billed by use, and their results are added to the prompt unseen.";
