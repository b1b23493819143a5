/**
 * Which calls of a request begin with the same text: only those gain by their provider's cache. It begins with tools, the form of
 * the answer and the system message, so a prefix has these, too: together they are its frame.
 */
import type { BodyOptions, CallBody, CallFacts, SharedPrefix } from "../call.ts";
import { PREFIX_BYTES_MIN, PREFIX_BYTES_PER_TOKEN } from "../limits.ts";

type Call = { body: CallBody; facts: CallFacts; cache?: Pick<SharedPrefix, "ttl" | "warmMs"> };
/** What of a call's options is in its frame. */
type Options = { [Name in "system" | "params" | "schema"]?: BodyOptions[Name] | undefined };

/** The names of a frame: with its system message, and without it. A part that is empty has the name "". */
type Frame = { whole: string; outer: string; systemTokens: number };

const encoder = new TextEncoder();

export class SharedPrefixes {
  readonly #defaults: Options;
  /** By the texts of frames; the defaults' own has none. */
  readonly #frames: ReadonlyMap<string, Frame>;
  readonly #texts: FrameTexts;
  readonly #default: Frame;
  /** By system messages of calls that differ from the defaults in nothing else. */
  readonly #systems: ReadonlyMap<string, Frame>;
  readonly #counts = new Map<string, number>();

  private constructor(
    defaults: Options,
    own: Frame,
    others: { frames: ReadonlyMap<string, Frame>; texts: FrameTexts; systems: ReadonlyMap<string, Frame> },
  ) {
    this.#defaults = defaults;
    this.#default = own;
    this.#frames = others.frames;
    this.#texts = others.texts;
    this.#systems = others.systems;
  }

  /**
   * `defaults`: what calls have that set nothing of their own. `others`: options of calls that have; those of any other call share
   * nothing. `systems`: system messages of calls that set nothing else. `hash`: a digest in hexadecimal digits.
   */
  static async of(
    defaults: Options,
    hash: (text: string) => Promise<string>,
    others: readonly Options[] = [],
    systems: readonly string[] = [],
  ): Promise<SharedPrefixes> {
    const frames = new Map<string, Frame>();
    const texts = new FrameTexts();
    for (const options of others) {
      const text = texts.of(options);
      if (!frames.has(text)) frames.set(text, await frameOf(options, hash));
    }
    const own = await frameOf(defaults, hash);
    const bySystem = new Map<string, Frame>();
    // Tools and schemas of the defaults are read once, however many system messages there are.
    for (const system of systems) {
      const whole = (await hash(`${own.outer}\n${system}`)).slice(0, NAME_DIGITS);
      bySystem.set(system, { whole, outer: own.outer, systemTokens: systemTokensOf(system) });
    }
    return new SharedPrefixes(defaults, own, { frames, texts, systems: bySystem });
  }

  /** Counts a call with its text, or as many as it stands for. Every call is counted before the first is marked. */
  count(call: Call, calls = 1): void {
    const key = this.#prefixOf(call)?.key;
    if (key !== undefined) this.#counts.set(key, (this.#counts.get(key) ?? 0) + calls);
  }

  /** The call, with the prefix that it shares with another one, if it does. */
  mark<Marked extends Call>(call: Marked): Marked {
    const prefix = this.#prefixOf(call);
    return prefix === null || (this.#counts.get(prefix.key) ?? 0) < 2 ? call : marked(call, prefix);
  }

  /** A call with its prefix, which other calls have, or may have. */
  markLone<Marked extends Call>(call: Marked): Marked {
    const prefix = this.#prefixOf(call);
    return prefix === null ? call : marked(call, prefix);
  }

  /** Null = the call begins with a text of its own, or is not to be cached. */
  #prefixOf({ body, facts, cache }: Call): Pick<SharedPrefix, "key" | "tokens"> | null {
    if (cache === undefined || facts.cacheTtl !== undefined) return null;
    const { context, messages } = body;
    const frame = this.#frameOf(body, context?.place === "system");
    if (frame === undefined) return null;
    if (context === undefined || context.place === "template") {
      return frame.systemTokens === 0 ? null : { key: `sys_${frame.whole}`, tokens: frame.systemTokens };
    }
    // Everything before the text must be the same, and the messages of calls are not compared.
    if (context.place === "prompt" && messages !== undefined) return null;
    const { id, from, to, skip = 0, take = 0 } = context;
    const range = `${from}-${to}${take === 0 ? "" : `:${skip}-${take}`}`;
    const before = context.place === "system" ? `:system${named(frame.outer)}` : named(frame.whole);
    return { key: `${id}:${range}${before}`, tokens: Math.floor((to - from) / PREFIX_BYTES_PER_TOKEN) };
  }

  /** `isOuter`: the system message comes behind what calls share. */
  #frameOf(body: CallBody, isOuter: boolean): Frame | undefined {
    const { system, params, schema } = this.#defaults;
    // Calls that override nothing have the very values of their batch: its texts are not compared 50,000 times.
    const isSame = body.schema === schema && toolsOf(body) === toolsOf({ params });
    if (isSame && (isOuter || body.system === system)) return this.#default;
    const own = isSame && body.system !== undefined ? this.#systems.get(body.system) : undefined;
    if (own !== undefined) return own;
    return this.#frames.size === 0 ? undefined : this.#frames.get(this.#texts.of(body));
  }
}

/** The texts of frames, each written once for the same values: calls that inherit a long one have it without a copy. */
class FrameTexts {
  readonly #numbers = new Map<unknown, number>();
  readonly #texts = new Map<string, string>();

  of(options: Options): string {
    const { system, schema } = options;
    const key = [system, toolsOf(options), schema].map((part) => this.#numberOf(part)).join(" ");
    const known = this.#texts.get(key);
    if (known !== undefined) return known;
    const text = frameText(options);
    this.#texts.set(key, text);
    return text;
  }

  /** The same number for the same value. */
  #numberOf(part: unknown): number {
    const known = this.#numbers.get(part) ?? this.#numbers.size;
    this.#numbers.set(part, known);
    return known;
  }
}

/** Whether a system message is as long as providers cache. */
export function isLong(system: string | undefined): boolean {
  return systemBytes(system) >= PREFIX_BYTES_MIN;
}

/** The bytes of a system message that may be long enough; 0 = it is not. */
function systemBytes(system = ""): number {
  // A character has at most three bytes per unit of its text: most messages are not encoded to find that they are short.
  return system.length * 3 < PREFIX_BYTES_MIN ? 0 : encoder.encode(system).length;
}

function toolsOf({ params }: Pick<Options, "params">): unknown {
  return params?.["tools"];
}

function frameText({ system, params, schema }: Options): string {
  return JSON.stringify([system ?? null, toolsOf({ params }) ?? null, schema ?? null]);
}

async function frameOf(options: Options, hash: (text: string) => Promise<string>): Promise<Frame> {
  const { params, schema } = options;
  return {
    whole: await nameOf(options, hash),
    outer: await nameOf({ params, schema }, hash),
    systemTokens: systemTokensOf(options.system),
  };
}

function systemTokensOf(system: string | undefined): number {
  const bytes = systemBytes(system);
  return bytes < PREFIX_BYTES_MIN ? 0 : Math.floor(bytes / PREFIX_BYTES_PER_TOKEN);
}

async function nameOf(options: Options, hash: (text: string) => Promise<string>): Promise<string> {
  const text = frameText(options);
  return text === EMPTY_FRAME ? "" : (await hash(text)).slice(0, NAME_DIGITS);
}

const EMPTY_FRAME = frameText({});
/** As many as the id of a context has. */
const NAME_DIGITS = 32;

function named(name: string): string {
  return name === "" ? "" : `:${name}`;
}

function marked<Marked extends Call>(call: Marked, prefix: Pick<SharedPrefix, "key" | "tokens">): Marked {
  return { ...call, facts: { ...call.facts, shared: { ...prefix, ...call.cache } } };
}
