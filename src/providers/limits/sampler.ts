/** What an executor has seen of the rate limits of its keys: the newest headers, until it reports them to a run. */
import type { RateSample } from "../../gate/wire.ts";
import { RATE_SAMPLE_EVERY_MS } from "../../limits.ts";
import { readRateSample, type LimitHeaders } from "./rate-headers.ts";

type Seen = { sample: RateSample | null; sentMs: number; readMs: number };

/** When a request was sent, when its answer is read, and which headers show limits there. */
type Look = { sentMs: number; nowMs: number; shown: LimitHeaders };

/** One per executor. It holds one sample per gate that its upstreams configure. */
export class RateSampler {
  readonly #seen = new Map<string, Seen>();
  #unreported = 0;

  /** Reads the headers of an answer, unless those of another were read just before. A rejection is always read. */
  see(gate: string, { status, headers }: Response, { sentMs, nowMs, shown }: Look): void {
    const known = this.#seen.get(gate);
    if (known !== undefined && status !== 429 && nowMs - known.readMs < RATE_SAMPLE_EVERY_MS) return;
    const sample = readRateSample(headers, { ageMs: nowMs - sentMs, nowMs, shown });
    const isNewer = known === undefined || known.sample === null || sentMs >= known.sentMs;
    if (sample === null || !isNewer) return void this.#seen.set(gate, { ...(known ?? NOTHING), readMs: nowMs });
    if (known === undefined || known.sample === null) this.#unreported += 1;
    this.#seen.set(gate, { sample, sentMs, readMs: nowMs });
  }

  /** Takes what was seen since the last time, by gate; null = nothing. Ages are as of now. */
  take(nowMs: number): Record<string, RateSample> | null {
    if (this.#unreported === 0) return null;
    this.#unreported = 0;
    const taken: Record<string, RateSample> = {};
    for (const [gate, seen] of this.#seen) {
      if (seen.sample !== null) taken[gate] = { ...seen.sample, ageMs: Math.max(0, nowMs - seen.sentMs) };
      seen.sample = null;
    }
    return taken;
  }
}

const NOTHING: Seen = { sample: null, sentMs: 0, readMs: 0 };
