/** Assembles an Anthropic message from the events of its stream: the object that a request without a stream would get. */
import { tryParse } from "../../../text/json/parse.ts";
import { isRecord } from "../../../text/json/record.ts";

type Fields = Record<string, unknown>;

/** Where the text of a delta goes, by its type. */
const TEXT_DELTAS: ReadonlyMap<unknown, { from: string; to: string }> = new Map([
  ["text_delta", { from: "text", to: "text" }],
  ["thinking_delta", { from: "thinking", to: "thinking" }],
  ["signature_delta", { from: "signature", to: "signature" }],
]);

/** Merges events in their order. Unknown events and deltas are ignored. */
export class MessageMerger {
  #message: Fields = {};
  readonly #blocks = new Map<number, { block: Fields; inputJson: string }>();

  add(event: Fields): void {
    const { type, message, content_block: block, delta, usage } = event;
    const index = typeof event["index"] === "number" ? event["index"] : 0;
    if (type === "message_start" && isRecord(message)) this.#message = { ...message };
    else if (type === "content_block_start" && isRecord(block)) {
      this.#blocks.set(index, { block: { ...block }, inputJson: "" });
    } else if (type === "content_block_delta" && isRecord(delta)) this.#addDelta(index, delta);
    else if (type === "message_delta") {
      if (isRecord(delta)) Object.assign(this.#message, delta);
      if (isRecord(usage)) this.#addUsage(usage);
    }
  }

  /** Whether a part of an answer has arrived. */
  get hasBegun(): boolean {
    return this.#blocks.size > 0;
  }

  /** The whole message as JSON text, with further fields. The inputs of tools are written as they came. */
  answer(more: Fields): string {
    const content = [...this.#blocks.entries()].toSorted(([a], [b]) => a - b).map(([, each]) => blockJson(each));
    const { content: _, ...fields } = { ...this.#message, ...more };
    return `${JSON.stringify(fields).slice(0, -1)}${Object.keys(fields).length === 0 ? "" : ","}"content":[${content.join(",")}]}`;
  }

  #addDelta(index: number, delta: Fields): void {
    const known = this.#blocks.get(index);
    if (known === undefined) return;
    const { block } = known;
    const text = TEXT_DELTAS.get(delta["type"]);
    if (text !== undefined) block[text.to] = joined(block[text.to], delta[text.from]);
    else if (delta["type"] === "input_json_delta") known.inputJson = joined(known.inputJson, delta["partial_json"]);
    else if (delta["type"] === "citations_delta") {
      const citations: unknown[] = Array.isArray(block["citations"]) ? block["citations"] : [];
      block["citations"] = [...citations, delta["citation"]];
    }
  }

  /** Its counts are totals; those that it leaves out stay as in the start. */
  #addUsage(usage: Fields): void {
    const known = isRecord(this.#message["usage"]) ? this.#message["usage"] : {};
    const named = Object.entries(usage).filter(([name, value]) => value !== null || !(name in known));
    this.#message["usage"] = { ...known, ...Object.fromEntries(named) };
  }
}

function joined(known: unknown, more: unknown): string {
  return (typeof known === "string" ? known : "") + (typeof more === "string" ? more : "");
}

/** The input of a tool arrives as parts of its JSON; a call without input has no such deltas. */
function blockJson({ block, inputJson }: { block: Fields; inputJson: string }): string {
  if (inputJson === "") return JSON.stringify(block);
  const { input: _, ...fields } = block;
  // If the completion cap cut the call, what arrived is kept as a text.
  const input = tryParse(inputJson) === undefined ? JSON.stringify(inputJson) : inputJson;
  return `${JSON.stringify(fields).slice(0, -1)},"input":${input}}`;
}
