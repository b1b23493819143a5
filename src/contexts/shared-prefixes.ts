/** Which calls of a batch begin with the same text: only those gain by their provider's cache. */
import type { CallBody, CallFacts, SharedPrefix } from "../call.ts";
import { PREFIX_BYTES_PER_TOKEN } from "../limits.ts";

type Call = { body: CallBody; facts: CallFacts; cache?: Pick<SharedPrefix, "ttl" | "warmMs"> };

export class SharedPrefixes {
  readonly #system: string | undefined;
  readonly #counts = new Map<string, number>();

  /** `system`: the system message of calls without their own. */
  constructor(system: string | undefined) {
    this.#system = system;
  }

  /** Counts a call with its text. Every call is counted before the first is marked. */
  count(call: Call): void {
    const key = this.#keyOf(call);
    if (key !== null) this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
  }

  /** The call, with the prefix that it shares with another one, if it does. */
  mark<Marked extends Call>(call: Marked): Marked {
    const key = this.#keyOf(call);
    return key === null || (this.#counts.get(key) ?? 0) < 2 ? call : marked(call, key);
  }

  /** A single call with its prefix, which other calls of the run may have. */
  markLone<Marked extends Call>(call: Marked): Marked {
    const key = this.#keyOf(call);
    return key === null ? call : marked(call, key);
  }

  /** Null = the call begins with a text of its own, or is not to be cached. */
  #keyOf({ body: { context, system, messages }, cache }: Call): string | null {
    if (cache === undefined || context === undefined || context.place === "template") return null;
    // Everything before the text must be the same, too, and the messages of calls are not compared.
    if (context.place === "prompt" && (system !== this.#system || messages !== undefined)) return null;
    const { id, from, to, skip = 0, take = 0, place } = context;
    return `${id}:${from}-${to}${take === 0 ? "" : `:${skip}-${take}`}${place === "system" ? ":system" : ""}`;
  }
}

function marked<Marked extends Call>(call: Marked, key: string): Marked {
  const { from = 0, to = 0 } = call.body.context ?? {};
  const tokens = Math.floor((to - from) / PREFIX_BYTES_PER_TOKEN);
  return { ...call, facts: { ...call.facts, shared: { key, tokens, ...call.cache } } };
}
