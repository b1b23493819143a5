/** A mix of calls, drawn from a seed: how each is asked, how the upstream answers it, when its client leaves. */

/**
 * `exact`: its outcome arrives, and is charged as the upstream billed it. `estimated`: it stays charged at its reservation.
 * `free`: the upstream bills nothing. `either`: its client leaves at a moment that decides it.
 */
export type Ends = "exact" | "estimated" | "free" | "either";

export type PlannedCall = {
  number: number;
  kind: Kind;
  /** Bytes of the request. */
  body: string;
  /** What the upstream says it used. Its prompt tokens name the call in the log. */
  usage: { prompt: number; completion: number };
};

/** How each attempt of a call of a kind ends, in their order; the client's leaving never leads to another. */
export const KINDS = {
  whole: ["exact"],
  chunked: ["exact"],
  stream: ["exact"],
  "stream, usage asked": ["exact"],
  "names its cost": ["exact"],
  "whole, no usage": ["estimated"],
  "stream, no usage": ["estimated"],
  "400": ["free"],
  "500 once": ["free", "exact"],
  "429 once": ["free", "exact"],
  "500 always": ["free", "free", "free"],
  "error in a 200 once": ["free", "exact"],
  "error in a chunked 200 once": ["free", "exact"],
  "whole, breaks off once": ["estimated", "exact"],
  "chunked, breaks off": ["estimated"],
  "stream, breaks off": ["estimated"],
  "stream, ends early": ["estimated"],
  "stream, reports an error": ["estimated"],
  "left at once": ["either"],
  "left before headers": ["estimated"],
  "left in the middle": ["estimated"],
  "left at some event": ["either"],
  "left at the end": ["exact"],
} as const satisfies Record<string, readonly Ends[]>;

export type Kind = keyof typeof KINDS;

const NAMES = Object.keys(KINDS).filter((name): name is Kind => name in KINDS);

/** A call's completion cap is this and its number, so that a charged reservation names its call, too. */
export const CAP_BASE = 1_000;

/** Prompts are at least so long that their reservation covers any usage planned here. */
const PROMPT = "word ".repeat(300);

/** Numbers in [0, 1) that depend on the seed alone. */
export function drawer(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Each kind comes once before any is drawn, so that a mix of any size has them all. */
export function plan(count: number, seed: number): PlannedCall[] {
  const draw = drawer(seed);
  return Array.from({ length: count }, (_, number) => {
    const kind = NAMES[number] ?? NAMES[Math.floor(draw() * NAMES.length)] ?? "whole";
    const streams = kind.startsWith("stream") || kind.startsWith("left");
    const options = kind === "stream, usage asked" ? { stream_options: { include_usage: true } } : {};
    const body = JSON.stringify({
      model: "up-1",
      messages: [{ role: "user", content: `${number} ${PROMPT}` }],
      max_tokens: CAP_BASE + number,
      ...(streams ? { stream: true, ...options } : {}),
    });
    return { number, kind, body, usage: { prompt: number + 1, completion: 1 + Math.floor(draw() * 900) } };
  });
}
