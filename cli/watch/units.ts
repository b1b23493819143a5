/** Times and counts as text. Money is shown as on the page. */

/** "0.42s", "1m05s", "2h03m"; `digits` decimals below a minute. */
export function durationText(durationMs: number, digits = 2): string {
  const seconds = Math.max(0, durationMs) / 1000;
  if (Number(seconds.toFixed(digits)) < 60) return `${seconds.toFixed(digits)}s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)}m${twoDigits(whole % 60)}s`;
  return `${Math.floor(whole / 3600)}h${twoDigits(Math.floor((whole % 3600) / 60))}m`;
}

/** "1,930". */
export function countText(count: number): string {
  return count.toLocaleString("en-US");
}

/** "1 attempt", "2 attempts". */
export function plural(count: number, noun: string): string {
  return `${countText(count)} ${noun}${count === 1 ? "" : "s"}`;
}

function twoDigits(value: number): string {
  return String(value).padStart(2, "0");
}
