/**
 * `params` of a call, with what they add to its facts. Calls of one batch share the entries that its top level names: each of
 * these is read once, however many calls lay entries of their own over them.
 */
import { NAME_CHARS_MAX, JSON_DEPTH_MAX, PARAMS_ENTRIES_MAX } from "../limits.ts";
import { mergeFacts, NO_SPECIAL_FACTS } from "../providers/formats/request/call-facts.ts";
import { ownParamFault } from "../providers/formats/request/own-params.ts";
import { chatFieldsReading, readChatFields, type ChatFields } from "./chat-fields.ts";
import { invalid, type Parsed } from "./errors.ts";
import type { Sliced } from "../text/bytes/slices.ts";
import { nestsDeeperThan } from "./text.ts";

type Values = Readonly<Record<string, unknown>>;
/** Names an entry from the root of the request; null = all of them. */
type ParamsPath = (name: string | null) => string;

const NONE: ChatFields = {
  jsonBytes: 0,
  textBytes: 0,
  textTokensMax: 0,
  mediaParts: 0,
  maxTokens: null,
  special: NO_SPECIAL_FACTS,
  budgets: [],
  budgetField: (field) => field,
};

export class Params {
  static readonly NONE = new Params({}, NONE);

  /** The entries as they are sent. Those that calls share are the same values in all of them. */
  readonly values: Values;
  /** The facts of all entries together. */
  readonly fields: ChatFields;
  /** The facts of single entries, once a call that inherits them has replaced one. */
  readonly #single = new Map<string, ChatFields>();

  /** The first entries that are laid over none, if their facts are read already; null = they are not. */
  readonly #ahead: { sent: Values; read: Parsed<ChatFields> } | null;

  private constructor(
    values: Values,
    fields: ChatFields,
    ahead: { sent: Values; read: Parsed<ChatFields> } | null = null,
  ) {
    this.values = values;
    this.fields = fields;
    this.#ahead = ahead;
  }

  /** No entries, and the facts of those that a request names first, read in slices: they may be megabytes that its calls share. */
  static *ahead(sent: Values, path: ParamsPath): Sliced<Params> {
    return new Params({}, NONE, { sent, read: yield* chatFieldsReading(sent, "", path) });
  }

  /** These entries with those that a call names itself, which replace equal names. Or why they are refused. */
  with(sent: Values, path: ParamsPath): Parsed<Params> {
    const names = Object.keys(sent);
    if (names.length === 0 && this !== Params.NONE && this.#ahead === null) return { ok: true, value: this };
    const values = names.length > PARAMS_ENTRIES_MAX ? sent : { ...this.values, ...sent };
    if (Object.keys(values).length > PARAMS_ENTRIES_MAX) {
      return invalid(path(null), `expected at most ${PARAMS_ENTRIES_MAX} entries`);
    }
    for (const name of names) {
      const why = ownParamFault(name, sent[name]);
      if (why !== null) return invalid(path(name.slice(0, NAME_CHARS_MAX)), `cannot be forwarded. ${why}`);
    }
    if (nestsDeeperThan(sent, JSON_DEPTH_MAX)) {
      return invalid(path(null), `expected at most ${JSON_DEPTH_MAX} levels of nesting`);
    }
    const own = this.#ahead?.sent === sent ? this.#ahead.read : readChatFields(sent, "", path);
    if (!own.ok) return own;
    const kept = this.#fieldsWithout(sent);
    return { ok: true, value: new Params(values, kept === null ? own.value : both(kept, own.value)) };
  }

  /** The facts of the entries that no other replaces; null = there are none. */
  #fieldsWithout(replaced: Values): ChatFields | null {
    const names = Object.keys(this.values);
    if (names.length === 0) return null;
    const kept = names.filter((name) => !Object.hasOwn(replaced, name));
    if (kept.length === names.length) return this.fields;
    return kept
      .map((name) => this.#fieldsOf(name))
      .reduce<ChatFields | null>((sum, each) => (sum === null ? each : both(sum, each)), null);
  }

  #fieldsOf(name: string): ChatFields {
    const known = this.#single.get(name);
    if (known !== undefined) return known;
    const read = readChatFields({ [name]: this.values[name] }, "", (field) => field ?? "params");
    if (!read.ok) throw new Error("an entry of params is refused that was accepted with the others");
    this.#single.set(name, read.value);
    return read.value;
  }
}

/** The facts of two sets of entries as one object: a comma stands for two of the four braces. */
function both(first: ChatFields, second: ChatFields): ChatFields {
  return {
    jsonBytes: first.jsonBytes + second.jsonBytes - 1,
    textBytes: first.textBytes + second.textBytes - 1,
    textTokensMax: first.textTokensMax + second.textTokensMax,
    mediaParts: first.mediaParts + second.mediaParts,
    maxTokens: lesser(first.maxTokens, second.maxTokens),
    special: mergeFacts(first.special, second.special),
    budgets: [...first.budgets, ...second.budgets],
    // No entry is in both.
    budgetField: (field) => (second.budgets.some((each) => each.field === field) ? second : first).budgetField(field),
  };
}

function lesser(first: number | null, second: number | null): number | null {
  if (first === null || second === null) return first ?? second;
  return Math.min(first, second);
}
