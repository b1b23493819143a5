/** Whether memory stays flat: a median of the beginning against one of the end. */
import { median } from "../stats.ts";

export type Sample = { minute: number; heapBytes: number; rssBytes: number };

export type Flatness = { firstBytes: number; lastBytes: number; growth: number };

/** Share of the time that is the warm-up: code is compiled, pools and caches fill. */
const WARM_UP = 0.2;

/** Compares the first third after the warm-up with the last. `growth` is a share of the first; NaN for too few samples. */
export function flatness(samples: readonly { minute: number; bytes: number }[]): Flatness {
  const warm = samples.slice(Math.ceil(samples.length * WARM_UP)).map(({ bytes }) => bytes);
  const third = Math.floor(warm.length / 3);
  const firstBytes = median(warm.slice(0, third));
  const lastBytes = median(warm.slice(-third));
  return { firstBytes, lastBytes, growth: lastBytes / firstBytes - 1 };
}
