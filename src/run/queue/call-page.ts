/**
 * Call pages: how a group's calls are stored. A page has up to 32 calls in two texts: their facts as one JSON array,
 * and their bodies as one JSON text per line, so that a body reaches its executor without being parsed on the way (JSON
 * text has no line breaks of its own). A call that is made many times over is one page of any number of slots: its facts and its body
 * once, and how many slots have them.
 */
import type { CallBody, CallFacts, Cascade, Priority, SharedBody } from "../../call.ts";
import { labelsOf, type CallLabels } from "../../labels.ts";
import { CALL_PAGE_BYTES_MAX, CALL_PAGE_SLOTS_MAX } from "../../limits.ts";
import type { SlotFacts } from "./slot.ts";

/** A page to be stored. `calls` has the bodies, or the place of the first of them (`placedPage`). */
export type CallPage = { firstIndex: number; facts: string; calls: string };

/** The facts of some slots of a group, from `firstIndex` on. */
export type ReadPage = { firstIndex: number; slots: readonly SlotFacts[] };

/** Where a body is in R2: in which of its group's objects, and in which line of it. */
export type BodyPlace = { object: number; line: number };

/** The facts that every call has, by their position in a `FactsRow`. */
type PositionalFacts = "promptBytes" | "messageCount" | "model" | "maxTokens" | "priority" | "timeoutMs" | "mediaParts";

/** All other facts by name, without those that the call does not have; `id` is the client's id of the call. */
type FactsExtra = { id?: string; cascade?: StoredCascade } & Omit<CallFacts, PositionalFacts | "cascade">;

/** A cascade with the indexes of its models. */
type StoredCascade = Omit<Cascade, "models"> & { models: readonly number[] };

/** The facts of a page whose slots all have the same call. */
type CopiedFacts = { copies: number; row: FactsRow };

/** The extra of a call that is bare and has no other: most calls of a large batch, for which an object would be a third of their row. */
const BARE = 1;

type FactsRow = [number, number, number, number | null, Priority, number | null, number, (FactsExtra | typeof BARE)?];

/** Splits calls into pages. `models` collects the distinct models; a slot refers to its own by index. */
export class CallPageBuilder {
  readonly models: (string | null)[];
  readonly #modelIndexes = new Map<string | null, number>();
  readonly #shared: ReadonlyMap<string, unknown>;
  readonly #sharedParams: SharedBody["params"];
  /** The facts of the last call without an id, and their row: alike calls in a row have one object of facts. */
  #last: { facts: CallFacts; row: FactsRow } | null = null;
  #facts: FactsRow[] = [];
  #lines: string[] = [];
  #chars = 0;
  #nextIndex: number;
  /** Characters of all bodies so far: close enough to the bytes that the group takes in storage to bound them. */
  totalChars = 0;
  /** Characters of all models: the group stores them in one row. */
  modelChars = 0;

  /**
   * `defaults`: the options that the group's calls share, which the group stores once. `after`: the group has so many calls
   * already, and these models.
   */
  constructor(
    defaults: SharedBody,
    after: { calls: number; models: readonly (string | null)[] } = { calls: 0, models: [] },
  ) {
    this.#shared = new Map<string, unknown>(Object.entries(defaults));
    this.#sharedParams = defaults.params;
    this.#nextIndex = after.calls;
    this.models = [];
    for (const model of after.models) this.#modelIndex(model);
  }

  /** Adds a call; returns the page that it completed, if any. */
  add(call: { body: CallBody; facts: CallFacts; id?: string | null }): CallPage | null {
    const line = this.#lineOf(call.body);
    const full = this.#lines.length === CALL_PAGE_SLOTS_MAX || this.#chars + line.length > CALL_PAGE_BYTES_MAX;
    const page = full ? this.flush() : null;
    this.#facts.push(this.#rowOf(call));
    this.#lines.push(line);
    this.#chars += line.length;
    this.totalChars += line.length;
    return page;
  }

  /** The page of a call that is made so often. Nothing else may be in the group. */
  copies(call: { body: CallBody; facts: CallFacts }, count: number): CallPage {
    const line = this.#lineOf(call.body);
    this.totalChars += line.length;
    return { firstIndex: 0, facts: this.kind(call.facts, count), calls: line };
  }

  /** The facts of so many calls that have the same ones. Adds nothing but their models. */
  kind(facts: CallFacts, count: number): string {
    const copied: CopiedFacts = { copies: count, row: this.#rowOf({ facts }) };
    return JSON.stringify(copied);
  }

  #lineOf(body: CallBody): string {
    return JSON.stringify(without(body, this.#shared, this.#sharedParams));
  }

  #rowOf(call: { facts: CallFacts; id?: string | null }): FactsRow {
    if (call.id != null) return this.#newRowOf(call);
    if (this.#last?.facts !== call.facts) this.#last = { facts: call.facts, row: this.#newRowOf(call) };
    return this.#last.row;
  }

  #newRowOf(call: { facts: CallFacts; id?: string | null }): FactsRow {
    const { promptBytes, messageCount, maxTokens, priority, timeoutMs, model, mediaParts, cascade, ...rest } =
      call.facts;
    const row: FactsRow = [
      promptBytes,
      messageCount,
      this.#modelIndex(model),
      maxTokens,
      priority,
      timeoutMs,
      mediaParts,
    ];
    const later = cascade?.models.map((each) => this.#modelIndex(each));
    const extra: FactsExtra =
      cascade === undefined || later === undefined ? rest : { ...rest, cascade: { ...cascade, models: later } };
    const named = call.id == null ? extra : { ...extra, id: call.id };
    const names = Object.keys(named).length;
    if (names > 0) row.push(names === 1 && named.isBare === true ? BARE : named);
    return row;
  }

  /** The unfinished page, or null when it is empty. */
  flush(): CallPage | null {
    if (this.#lines.length === 0) return null;
    const page = {
      firstIndex: this.#nextIndex,
      facts: JSON.stringify(this.#facts),
      calls: this.#lines.join("\n"),
    };
    this.#nextIndex += this.#lines.length;
    this.#facts = [];
    this.#lines = [];
    this.#chars = 0;
    return page;
  }

  #modelIndex(model: string | null): number {
    const known = this.#modelIndexes.get(model);
    if (known !== undefined) return known;
    const index = this.models.push(model) - 1;
    this.#modelIndexes.set(model, index);
    this.modelChars += model?.length ?? 0;
    return index;
  }
}

/** A page whose bodies are in R2 from `place` on, one after another. */
export function placedPage({ firstIndex, facts }: CallPage, { object, line }: BodyPlace): CallPage {
  return { firstIndex, facts, calls: JSON.stringify([object, line]) };
}

/** Where the first body of a page is in R2; null if the page has its bodies, each of which is a JSON object. */
export function placeOf(calls: string): BodyPlace | null {
  if (!calls.startsWith("[")) return null;
  const [object, line]: [number, number] = JSON.parse(calls);
  return { object, line };
}

/** Reads a page's facts; `models` is the group's list. Slots that have the same call have the same facts, one object. */
export function readFacts(facts: string, models: readonly (string | null)[]): SlotFacts[] {
  if (!isCopied(facts)) {
    const rows: FactsRow[] = JSON.parse(facts);
    return rows.map((row) => slotFactsOf(row, models));
  }
  const { slot, count } = readKind(facts, models);
  return Array<SlotFacts>(count).fill(slot);
}

/** Reads the facts that so many calls have, as `kind` of the builder writes them. */
export function readKind(kind: string, models: readonly (string | null)[]): { slot: SlotFacts; count: number } {
  const { copies, row }: CopiedFacts = JSON.parse(kind);
  return { slot: slotFactsOf(row, models), count: copies };
}

/** Whether all slots of a page have the same call: then it has one body. */
export function isCopied(facts: string): boolean {
  return facts.startsWith("{");
}

function slotFactsOf(
  [promptBytes, messageCount, modelIndex, maxTokens, priority, timeoutMs, mediaParts, extra]: FactsRow,
  models: readonly (string | null)[],
): SlotFacts {
  const model = models[modelIndex] ?? null;
  const read = { promptBytes, messageCount, modelIndex, model, maxTokens, priority, timeoutMs, mediaParts };
  if (extra === undefined) return read;
  if (extra === BARE) return { ...read, isBare: true };
  const { id, cascade, ...facts } = extra;
  void id;
  if (cascade === undefined) return { ...read, ...facts };
  const { models: laterModels, ...gates } = cascade;
  const later = laterModels.map((index) => models[index] ?? "");
  return { ...read, ...facts, cascade: { ...gates, models: later }, laterModels };
}

/** What its client calls a slot, and its labels; null, or absent = it has none. */
export type SlotName = { id: string | null } & CallLabels;

/** Reads the names of a page's calls. Copies have the same labels, and no ids. */
export function readNames(facts: string): SlotName[] {
  if (isCopied(facts)) {
    const { copies, row }: CopiedFacts = JSON.parse(facts);
    return Array<SlotName>(copies).fill(slotNameOf(row));
  }
  const rows: FactsRow[] = JSON.parse(facts);
  return rows.map(slotNameOf);
}

function slotNameOf(row: FactsRow): SlotName {
  const extra = row[7];
  return extra === undefined || extra === BARE ? { id: null } : { id: extra.id ?? null, ...labelsOf(extra) };
}

/**
 * A body without the options, and the entries of `params`, that are the very values of its group's defaults: what calls share is
 * stored once, not per slot.
 */
export function withoutDefaults(body: CallBody, defaults: SharedBody): CallBody {
  return without(body, new Map<string, unknown>(Object.entries(defaults)), defaults.params);
}

function without(body: CallBody, shared: ReadonlyMap<string, unknown>, sharedParams: SharedBody["params"]): CallBody {
  if (shared.size === 0) return body;
  const own: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(body)) if (shared.get(name) !== value) own[name] = value;
  if (own["params"] !== undefined && sharedParams !== undefined) {
    own["params"] = entriesOver(body.params ?? {}, sharedParams);
  }
  return Object.assign<CallBody, object>({}, own);
}

function entriesOver(params: Readonly<Record<string, unknown>>, shared: Readonly<Record<string, unknown>>) {
  const isOwn = ([name, value]: [string, unknown]) => !Object.hasOwn(shared, name) || shared[name] !== value;
  return Object.fromEntries(Object.entries(params).filter(isOwn));
}

/**
 * The body of a stored call: its group's defaults, overridden by its own fields, and by its own entries of `params`. Throws if either
 * text is not JSON. `parse`: how their numbers are read.
 */
export function readCall(callJson: string, defaultsJson: string, parse: (text: string) => unknown = parsed): CallBody {
  const defaults = Object.assign<SharedBody, unknown>({}, parse(defaultsJson));
  const call = Object.assign<CallBody, unknown>({}, parse(callJson));
  const body = { ...defaults, ...call };
  if (defaults.params !== undefined && call.params !== undefined) body.params = { ...defaults.params, ...call.params };
  return body;
}

function parsed(text: string): unknown {
  return JSON.parse(text);
}
