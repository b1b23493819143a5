/**
 * Pages: how a group's calls are stored. A page holds up to 32 calls in two texts: what dispatch needs of them as one
 * JSON array, and their bodies as one JSON text per line, so that a body reaches its executor without being parsed on
 * the way (JSON text has no line breaks of its own).
 */
import type { CallBody, CallFacts, Priority } from "../call.ts";
import { PAGE_BYTES_MAX, PAGE_SLOTS_MAX } from "../limits.ts";
import type { SlotFacts } from "./state.ts";

/** A page on its way to storage. */
export type Page = { firstIndex: number; facts: string; calls: string };

/** The call settings that a group's slots share: stored once, laid under each body by its executor. */
export type CallDefaults = Pick<CallBody, "system" | "temperature" | "params">;

/** What few calls have: the client's name for it, and facts that are left out where they say nothing. */
type FactsExtra = { id?: string } & Pick<CallFacts, "dedupeKey" | "completions" | "promptTokenIds" | "unbounded">;

type FactsRow = [number, number, number, number | null, Priority, number | null, number, FactsExtra?];

/** Cuts calls into pages. `models` collects the distinct models asked for; a slot names its own by place. */
export class PageBuilder {
  readonly models: (string | null)[] = [];
  readonly #defaults: CallDefaults;
  #facts: FactsRow[] = [];
  #lines: string[] = [];
  #chars = 0;
  #nextIndex = 0;
  /** Characters of all bodies so far: what the group will take in storage, near enough for a bound. */
  totalChars = 0;

  constructor(defaults: CallDefaults) {
    this.#defaults = defaults;
  }

  /** Adds a call; returns the page that it completed, if any. */
  add(call: { body: CallBody; facts: CallFacts; id?: string | null }): Page | null {
    const line = JSON.stringify(withoutDefaults(call.body, this.#defaults));
    const full = this.#lines.length === PAGE_SLOTS_MAX || this.#chars + line.length > PAGE_BYTES_MAX;
    const page = full ? this.flush() : null;
    const { promptBytes, messageCount, maxTokens, priority, timeoutMs, model, mediaParts, ...extra } = call.facts;
    const row: FactsRow = [
      promptBytes,
      messageCount,
      this.#modelIndex(model),
      maxTokens,
      priority,
      timeoutMs,
      mediaParts,
    ];
    const named = call.id == null ? extra : { ...extra, id: call.id };
    if (Object.keys(named).length > 0) row.push(named);
    this.#facts.push(row);
    this.#lines.push(line);
    this.#chars += line.length;
    this.totalChars += line.length;
    return page;
  }

  /** The page in the making, or null when it is empty. */
  flush(): Page | null {
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
    const known = this.models.lastIndexOf(model);
    return known === -1 ? this.models.push(model) - 1 : known;
  }
}

/** Reads a page's facts; `models` is the group's list. */
export function readFacts(facts: string, models: readonly (string | null)[]): SlotFacts[] {
  const rows: FactsRow[] = JSON.parse(facts);
  return rows.map(([promptBytes, messageCount, modelIndex, maxTokens, priority, timeoutMs, mediaParts, extra]) => {
    const model = models[modelIndex] ?? null;
    const read = { promptBytes, messageCount, modelIndex, model, maxTokens, priority, timeoutMs, mediaParts };
    if (extra === undefined) return read;
    const { id, ...facts } = extra;
    void id;
    return { ...read, ...facts };
  });
}

/** Reads the client's own names of a page's calls. */
export function readNames(facts: string): (string | null)[] {
  const rows: FactsRow[] = JSON.parse(facts);
  return rows.map((row) => row[7]?.id ?? null);
}

/** A body without what the group's defaults say already: a long system prompt is stored once, not per slot. */
function withoutDefaults(body: CallBody, defaults: CallDefaults): CallBody {
  if (body.system === undefined && body.temperature === undefined && body.params === undefined) return body;
  const own = { ...body };
  if (own.system === defaults.system) delete own.system;
  if (own.temperature === defaults.temperature) delete own.temperature;
  if (own.params === defaults.params) delete own.params;
  return own;
}
