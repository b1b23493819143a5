/** Amounts as people read them: counts, dollars, times. Pure. */

/** "1,930". */
export function countText(count: number): string {
  return count.toLocaleString("en-US");
}

/**
 * Dollars for people, as the page shows them: "$12.34", "$0.0040", "$0"; what is too small for four decimals is "<$0.0001".
 */
export function usdText(usd: number): string {
  if (usd <= 0) return "$0";
  if (usd < 0.000_05) return "<$0.0001";
  return usd >= 1 ? `$${DOLLARS.format(usd)}` : `$${usd.toFixed(4)}`;
}

const DOLLARS = new Intl.NumberFormat("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/** "42s", "1m05s", "2h03m". */
export function durationText(durationMs: number): string {
  const seconds = Math.round(Math.max(0, durationMs) / 1000);
  const two = (value: number) => String(value).padStart(2, "0");
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m${two(seconds % 60)}s`;
  return `${Math.floor(seconds / 3600)}h${two(Math.floor((seconds % 3600) / 60))}m`;
}
