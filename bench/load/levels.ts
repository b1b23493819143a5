/** The highest of some levels that a server sustains. */

/**
 * The last level that holds, 0 if none does. It tries few of them, by halves: what fails at a level is taken to fail at all above it.
 */
export async function lastThatHolds(
  levels: readonly number[],
  holds: (level: number) => Promise<boolean>,
): Promise<number> {
  let [from, to] = [0, levels.length];
  while (from < to) {
    const middle = Math.floor((from + to) / 2);
    if (await holds(levels[middle] ?? 0)) from = middle + 1;
    else to = middle;
  }
  return levels[from - 1] ?? 0;
}
