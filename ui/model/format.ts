/** Figures as the page shows them. */

/** Dollars with as many decimals as small amounts need: `$12.34`, `$0.0042`, `$0`. */
export function usdText(usd: number): string {
  if (usd === 0) return "$0";
  if (Math.abs(usd) >= 1) return `$${usd.toFixed(2)}`;
  return `$${usd.toFixed(Math.abs(usd) >= 0.01 ? 4 : 6)}`;
}

/** `420 ms`, `3.2 s`, `4 min 10 s`, `2 h 5 min`. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.round((ms % 60_000) / 1_000)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Made once: `toLocaleString` looks its locale up at each call. */
const COUNTS = new Intl.NumberFormat("en-US");

export function countText(count: number): string {
  return COUNTS.format(count);
}
