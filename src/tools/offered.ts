/** The tools of a run as a model is offered them: definitions of functions in the chat form, as a field of a request. */
import type { CallBody, CallFacts } from "../call.ts";
import { sizeOf, type TextSize } from "../contract/chat-fields.ts";
import type { Reason } from "../errors.ts";
import { isRecord } from "../text/json/record.ts";
import { parametersOf } from "./input.ts";
import type { Tool } from "./tool.ts";

/** A tool as its run shows it. */
type Listed = Pick<Tool, "name" | "description" | "parametersJson">;

type Call = { body: CallBody; facts: CallFacts };
type Offered<T> = { ok: true; value: T } | { ok: false; reason: Reason };

/** Definitions, and their size in a request. */
type Definitions = { tools: readonly unknown[]; size: TextSize };

/** What calls have that share their options stays the same value in all of them, so it is stored once. */
export class OfferedTools {
  readonly #tools: readonly Listed[];
  /** By the names. */
  readonly #definitions = new Map<string, Definitions>();
  /** By what they are laid over, and the names. */
  readonly #params = new Map<object | null, Map<string, Readonly<Record<string, unknown>>>>();

  constructor(tools: readonly Listed[]) {
    this.#tools = tools;
  }

  /** The call with the definitions of the tools that it names, behind its own. `param`: the field that names them. */
  offeredTo<C extends Call>(call: C, param: string): Offered<C> {
    const { toolUse } = call.facts;
    if (toolUse === undefined) return { ok: true, value: call };
    const found = this.#definitionsOf(toolUse.tools, param);
    if (!found.ok) return found;
    const params = this.paramsWith(call.body.params, toolUse.tools, param);
    if (!params.ok) return params;
    const { promptBytes, textTokensMax } = call.facts;
    const { size } = found.value;
    const facts: CallFacts = { ...call.facts, promptBytes: promptBytes + size.textBytes, tools: true };
    if (textTokensMax !== undefined) facts.textTokensMax = textTokensMax + size.textTokensMax;
    return { ok: true, value: { ...call, body: { ...call.body, params: params.value }, facts } };
  }

  /** Further fields of a request with these tools among them. */
  paramsWith(
    params: CallBody["params"],
    names: readonly string[],
    param: string,
  ): Offered<Readonly<Record<string, unknown>>> {
    const found = this.#definitionsOf(names, param);
    if (!found.ok) return found;
    const own: unknown = params?.["tools"] ?? [];
    const listed: readonly unknown[] = Array.isArray(own) ? own : [];
    const twice = names.find((name) => listed.some((tool) => nameOf(tool) === name));
    if (twice !== undefined) {
      const message = `${param}: "${twice}" is also among params.tools; rename one of them`;
      return { ok: false, reason: { reason: "invalid_request", message, param } };
    }
    const known = this.#params.get(params ?? null) ?? new Map<string, Readonly<Record<string, unknown>>>();
    this.#params.set(params ?? null, known);
    const key = names.join(",");
    const value = known.get(key) ?? {
      ...params,
      tools: listed.length === 0 ? found.value.tools : [...listed, ...found.value.tools],
    };
    known.set(key, value);
    return { ok: true, value };
  }

  #definitionsOf(names: readonly string[], param: string): Offered<Definitions> {
    const key = names.join(",");
    const known = this.#definitions.get(key);
    if (known !== undefined) return { ok: true, value: known };
    const tools: unknown[] = [];
    for (const name of names) {
      const tool = this.#tools.find((each) => each.name === name);
      if (tool === undefined) return { ok: false, reason: this.#unknown(name) };
      const parameters = parametersOf(tool);
      if (parameters === null) {
        const message = `the tool "${name}" was registered without parameters, so no model can be offered it; register it with a JSON Schema of its input`;
        return { ok: false, reason: { reason: "tool_without_parameters", message, param } };
      }
      const described = tool.description === null ? {} : { description: tool.description };
      tools.push({ type: "function", function: { name, ...described, parameters } });
    }
    const definitions = { tools, size: sizeOf(JSON.stringify(tools)) };
    this.#definitions.set(key, definitions);
    return { ok: true, value: definitions };
  }

  #unknown(name: string): Reason {
    const names = this.#tools.map((tool) => tool.name).join(", ");
    return { reason: "not_found", what: `tool "${name}"`, hint: `this run has ${names === "" ? "no tools" : names}` };
  }
}

/** The name of a tool in any provider's form. */
function nameOf(tool: unknown): unknown {
  if (!isRecord(tool)) return undefined;
  return isRecord(tool["function"]) ? tool["function"]["name"] : tool["name"];
}
