/** The calls of the storm: a thousand of mixed sizes, and what they would cost without a limit. */
import { billNanoUsd, draw, usageOf } from "./tariff.ts";

/** One call that a client wants answered. Its prompt begins with the name under which the upstream bills it. */
export type StormCall = { number: number; maxTokens: number | null };

export type StormPlan = {
  /** Asked one by one with `/query`, all at once. */
  single: readonly StormCall[];
  /** Asked with `/batch`, all at once too. */
  batches: readonly (readonly StormCall[])[];
  /** What the upstream would bill for each of them once, nano-USD. */
  worthNanoUsd: number;
};

/** 600 single calls and ten batches of 40. */
export function planStorm(): StormPlan {
  const calls = Array.from({ length: 1_000 }, (_, number) => ({ number, maxTokens: maxTokensOf(number) }));
  const single = calls.filter(({ number }) => number % 5 < 3);
  const batched = calls.filter(({ number }) => number % 5 >= 3);
  const batches = Array.from({ length: 10 }, (_, at) => batched.slice(at * 40, at * 40 + 40));
  return { single, batches, worthNanoUsd: calls.reduce((sum, call) => sum + worthOf(call), 0) };
}

/** The name of a call's `attempt`-th sending by its client: a call that is sent again is billed again. */
export function nameOf({ number }: StormCall, attempt: number): string {
  return `c${number}.${attempt}`;
}

/** The prompt sent under a name: 60 to 1,500 bytes. */
export function promptOf(call: StormCall, name: string): string {
  return `${name} `.padEnd(60 + Math.floor(1_440 * draw(call.number, "prompt")), "lorem ipsum ");
}

/** One call in five names no cap. */
function maxTokensOf(number: number): number | null {
  return draw(number, "no cap") < 0.2 ? null : 20 + Math.floor(480 * draw(number, "cap"));
}

function worthOf(call: StormCall): number {
  const name = nameOf(call, 1);
  const prompt = { bytes: promptOf(call, name).length, messages: 1 };
  return billNanoUsd(usageOf(name, prompt, call.maxTokens));
}
