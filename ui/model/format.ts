/** Figures as the page shows them. */

/**
 * Dollars for people: `$12.34`, `$0.0040`, `$0`. What is too small for four decimals is `<$0.0001`, so that no spent amount looks like
 * none. Exact amounts are in the run's document.
 */
export function usdText(usd: number): string {
  if (usd === 0) return "$0";
  const size = Math.abs(usd);
  if (size < 0.000_05) return usd < 0 ? "-<$0.0001" : "<$0.0001";
  const sign = usd < 0 ? "-" : "";
  return size >= 1 ? `${sign}$${DOLLARS.format(size)}` : `${sign}$${size.toFixed(4)}`;
}

/** The cost of a single call, which may be tiny: `$0.0123`, `$0.000021`. */
export function exactUsdText(usd: number): string {
  return usd === 0 || Math.abs(usd) >= 0.01
    ? usdText(usd)
    : `$${Number(usd.toPrecision(2)).toFixed(9).replace(/0+$/, "")}`;
}

/** `420 ms`, `3.2 s`, `4 min 10 s`, `2 h 5 min`. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** How long ago: `now`, `40 s ago`, `3 min ago`, `5 h ago`, `2 days ago`. */
export function agoText(ms: number): string {
  const seconds = Math.floor(Math.max(0, ms) / 1_000);
  if (seconds < 5) return "now";
  if (seconds < 60) return `${seconds} s ago`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ago`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ago`;
  return `${Math.floor(hours / 24)} days ago`;
}

/** Calls per second: `0.4`, `17`. */
export function rateText(perSecond: number): string {
  return perSecond >= 10 ? countText(Math.round(perSecond)) : perSecond.toFixed(1);
}

/** Made once: `toLocaleString` looks its locale up at each call. */
const COUNTS = new Intl.NumberFormat("en-US");
const DOLLARS = new Intl.NumberFormat("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

export function countText(count: number): string {
  return COUNTS.format(count);
}

/** `1 call`, `12 calls`. */
export function callsText(count: number): string {
  return `${countText(count)} ${count === 1 ? "call" : "calls"}`;
}
