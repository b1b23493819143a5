/** Reads the time at which a provider says that a rate limit is reset: every one writes it in another way. */

const MINUTE_MS = 60_000;
const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: MINUTE_MS, h: 3_600_000, d: 86_400_000 };

/** OpenAI's and Groq's: `6m0s`, `20ms`, `2m59.56s`. */
const PARTS = /(\d+(?:\.\d+)?)(ms|s|m|h|d)/g;
const DURATION = /^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/;
const NUMBER = /^\d{1,15}(?:\.\d{1,15})?$/;

/** Numbers from here on are points in time: as seconds since 1970, 2001; as a duration, thirty years. */
const EPOCH_S_MIN = 1e9;
/** Numbers from here on are points in time in ms: as seconds, the year 5138. */
const EPOCH_MS_MIN = 1e11;

/**
 * The time from now, ms; null if it cannot be read. A plain number is seconds (Azure, Cerebras), or a point in time in
 * seconds or ms since 1970 (OpenRouter); a date is RFC 3339 (Anthropic). A time in the past is now.
 */
export function readResetMs(value: string, nowMs: number): number | null {
  const text = value.trim();
  if (NUMBER.test(text)) {
    const number = Number(text);
    if (number >= EPOCH_MS_MIN) return Math.max(0, number - nowMs);
    if (number >= EPOCH_S_MIN) return Math.max(0, number * 1_000 - nowMs);
    return number * 1_000;
  }
  if (DURATION.test(text)) {
    let ms = 0;
    for (const [, amount = "", unit = ""] of text.matchAll(PARTS)) ms += Number(amount) * (UNITS[unit] ?? 0);
    return ms;
  }
  const dateMs = /^\d{4}-\d\d-\d\dT/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(dateMs) ? null : Math.max(0, dateMs - nowMs);
}
