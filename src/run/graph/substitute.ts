/**
 * Puts outputs in the place of references, when a slot is claimed. One pass: an inserted output is never read for references, so
 * a model that answers `$2` or `{{b.output}}` inserts just that. The result is bounded while it grows, because a prompt may
 * name an output thousands of times.
 */
import type { CallBody } from "../../call.ts";
import type { Reason } from "../../errors.ts";
import { pathText, partAt, tokensOf, type Reference } from "./refs.ts";
import type { Injection, JsonPath } from "./types.ts";

/** The outputs of a task's slots, in order; null for a slot that has none: it failed, was skipped, or has no element. */
export type Outputs = readonly (string | null)[];

/** What a slot's references can be replaced with. */
export type Sources = {
  /** The outputs of a task by its id; null if no task has it, or if the slot's task does not depend on it. */
  outputsOf: (task: string) => Outputs | null;
  /** The element of a `foreach` slot: a JSON value, or the text of an output. Null in other tasks. */
  item: { value: unknown } | null;
  /** Most characters of each inserted output; null = all. */
  charsMax: number | null;
  inject: Injection;
  /** The ids of the tasks that it depends on, in the order of their sections. Only `markdown` reads them. */
  dependencies: readonly string[];
  /** Most characters of all texts together. Needs to be no larger than what the upstream request may have in bytes. */
  totalCharsMax: number;
};

export type Substituted<T> = { ok: true; value: T } | { ok: false; reason: Reason };

/** Between the outputs of a `foreach` that are inserted as one text. */
const SEPARATOR = "\n\n";
const CUT_MARK = "…";

/** The body of a slot with its references replaced: in its prompt or the texts of its messages. `system` has none. */
export function substituteBody(body: CallBody, sources: Sources): Substituted<CallBody> {
  const writer = new Writer(sources);
  const changed: CallBody = { ...body };
  const sections = sources.inject === "markdown" ? writer.sections() : "";
  if (body.prompt !== undefined) changed.prompt = sections + writer.text(body.prompt);
  if (body.messages !== undefined) {
    const messages = body.messages.map((message) => writer.message(message));
    changed.messages = sections === "" ? messages : withSections(messages, sections);
  }
  return writer.fault === null ? { ok: true, value: changed } : { ok: false, reason: writer.fault };
}

/** Sections stand before the first message of the user: models expect their system message first. */
function withSections(messages: readonly unknown[], sections: string): unknown[] {
  const at = messages.findIndex((message) => record(message).role === "user");
  const place = at === -1 ? messages.length : at;
  return [...messages.slice(0, place), { role: "user", content: sections.trimEnd() }, ...messages.slice(place)];
}

/** The texts of a body that may have references, in the order in which they are substituted. */
export function* templatesOf(body: Pick<CallBody, "prompt" | "messages">): Generator<string> {
  if (body.prompt !== undefined) yield body.prompt;
  for (const message of body.messages ?? []) {
    const content = contentOf(message);
    if (typeof content === "string") yield content;
    else if (Array.isArray(content)) {
      for (const part of content) {
        const text = textOf(part);
        if (text !== null) yield text;
      }
    }
  }
}

/** Collects the texts of one body; after its first fault, it inserts nothing more. */
class Writer {
  fault: Reason | null = null;
  readonly #sources: Sources;
  #charsLeft: number;
  /** By the reference as it is spelled: a text may repeat one thousands of times. */
  readonly #values = new Map<string, string | null>();
  readonly #jsonValues = new Map<string, Json>();

  constructor(sources: Sources) {
    this.#sources = sources;
    this.#charsLeft = sources.totalCharsMax;
  }

  text(template: string): string {
    const parts: string[] = [];
    let at = 0;
    for (const { start, end, reference } of tokensOf(template)) {
      if (this.fault !== null) return "";
      const value = this.#cached(template.slice(start, end), reference);
      if (value === null) continue;
      this.#take(parts, template.slice(at, start));
      this.#take(parts, value);
      at = end;
    }
    this.#take(parts, template.slice(at));
    return parts.join("");
  }

  message(message: unknown): unknown {
    const content = contentOf(message);
    if (typeof content === "string") return { ...record(message), content: this.text(content) };
    if (!Array.isArray(content)) return message;
    const parts = content.map((part: unknown) => {
      const text = textOf(part);
      return text === null ? part : { ...record(part), text: this.text(text) };
    });
    return { ...record(message), content: parts };
  }

  /** The outputs of all dependencies that have one, each under a heading with the task's id. */
  sections(): string {
    const parts: string[] = [];
    for (const task of this.#sources.dependencies) {
      const value = this.#output(this.#sources.outputsOf(task) ?? []);
      if (value !== "") this.#take(parts, `## Result from ${task}\n${value}${SEPARATOR}`);
    }
    return parts.join("");
  }

  #take(parts: string[], text: string): void {
    this.#charsLeft -= text.length;
    if (this.#charsLeft >= 0) parts.push(text);
    else
      this.fault ??= {
        reason: "payload_too_large",
        what: "the prompt with its inserted outputs",
        bytesMax: this.#sources.totalCharsMax,
        param: null,
      };
  }

  #cached(spelling: string, reference: Reference): string | null {
    const known = this.#values.get(spelling);
    if (known !== undefined) return known;
    const value = this.#valueOf(reference);
    this.#values.set(spelling, value);
    return value;
  }

  /** The text of a reference; null if it is ordinary text in this graph. */
  #valueOf(reference: Reference): string | null {
    const { item, outputsOf } = this.#sources;
    if (reference.kind === "item") {
      if (item === null) return null;
      return reference.path === null
        ? this.#cut(rendered(item.value))
        : this.#part(item.value, reference.path, `item${pathText(reference.path)}`);
    }
    const outputs = outputsOf(reference.task);
    if (outputs === null) return null;
    if (reference.path === null) return this.#output(outputs);
    const name = `${reference.task}.output.json${pathText(reference.path)}`;
    const [output] = outputs;
    // A dependency that failed has no output: with `run_if` the task starts all the same, and reads nothing.
    return output === null || output === undefined ? "" : this.#part(output, reference.path, name);
  }

  #part(value: unknown, path: JsonPath, name: string): string {
    const json: Json = typeof value === "string" ? this.#json(value) : { ok: true, value };
    const part = json.ok ? partAt(json.value, path) : undefined;
    if (part !== undefined) return this.#cut(rendered(part));
    const message = json.ok ? `{{${name}}}: the output has no such part` : `{{${name}}}: the output is not JSON`;
    this.fault ??= { reason: "schema_violation", message };
    return "";
  }

  #json(text: string): Json {
    const known = this.#jsonValues.get(text);
    if (known !== undefined) return known;
    const json = jsonOf(text);
    this.#jsonValues.set(text, json);
    return json;
  }

  #output(outputs: Outputs): string {
    return outputs
      .filter((text) => text !== null)
      .map((text) => this.#cut(text))
      .join(SEPARATOR);
  }

  #cut(text: string): string {
    const { charsMax } = this.#sources;
    if (charsMax === null || text.length <= charsMax) return text;
    return text.slice(0, charsMax - CUT_MARK.length).toWellFormed() + CUT_MARK;
  }
}

/** The array whose elements a `foreach` task works on; refused if the output is not JSON or has no array there. */
export function elementsOf(output: string, path: JsonPath, source: string): Substituted<readonly unknown[]> {
  const json = jsonOf(output);
  const part = json.ok ? partAt(json.value, path) : undefined;
  if (Array.isArray(part)) return { ok: true, value: part };
  const name = `{{${source}.output.json${pathText(path)}}}`;
  const problem = json.ok ? "the output has no array there" : "the output is not JSON";
  return { ok: false, reason: { reason: "schema_violation", message: `foreach ${name}: ${problem}` } };
}

const FENCED = /^\s*```(?:json)?[ \t]*\n([\s\S]*?)\n?```\s*$/;

type Json = { ok: true; value: unknown } | { ok: false };

/** The JSON value of an output. Models often put it into a Markdown fence. */
function jsonOf(text: string): Json {
  try {
    const value: unknown = JSON.parse(FENCED.exec(text)?.[1] ?? text);
    return { ok: true, value };
  } catch {
    return { ok: false };
  }
}

/** A JSON value as a prompt shows it: a text without quotation marks, anything else as JSON. */
function rendered(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function contentOf(message: unknown): unknown {
  return typeof message === "object" && message !== null && "content" in message ? message.content : null;
}

/** The text of a part of a message's content; null if it is another kind of part. */
function textOf(part: unknown): string | null {
  if (typeof part !== "object" || part === null || !("text" in part)) return null;
  return typeof part.text === "string" ? part.text : null;
}

function record(value: unknown): { role?: unknown } {
  return typeof value === "object" && value !== null ? value : {};
}
