/** Tells tools that the client runs from those that the provider runs, which are billed by use. */
import { cannotBound, objectAt, readCacheControl, refuse, SPENDS_ALL, textOf, type Reading } from "./json-reading.ts";
import { firstElement, kindAt, member, nextElement, valueEnd, type JsonMember } from "./json-scan.ts";

/** Types of tools that the client runs itself. */
const CLIENT_TOOLS = new Set(["function", "custom"]);

/**
 * Reads `tools` and notes those of the provider. `typeRequired`: whether a tool of no type may be anyone's; only
 * Anthropic's own protocol takes it for the client's.
 */
export function readTools(reading: Reading, tools: JsonMember, typeRequired: boolean): void {
  if (tools.kind === "null") return;
  if (tools.kind !== "array") return refuse(reading, "tools", "expected an array");
  const { bytes } = reading;
  let index = 0;
  for (let at = firstElement(bytes, tools.start); at !== -1 && reading.refusal === null; index++) {
    const place = `tools[${index}]`;
    const tool = objectAt(reading, { kind: kindAt(bytes, at), start: at, end: at }, place);
    if (tool !== null) {
      const type = member(tool, "type");
      const isClients = type === null ? !typeRequired : CLIENT_TOOLS.has(textOf(reading, type) ?? "");
      if (!isClients) cannotBound(reading, { field: `${place}.type`, why: HOSTED, spends: SPENDS_ALL });
      readCacheControl(reading, tool, place);
    }
    at = nextElement(bytes, tool?.end ?? valueEnd(bytes, at));
  }
}

const HOSTED = "Tools of the provider are billed by use, and what they find joins the prompt unseen.";
