/**
 * Public ids of groups, `pg-<epoch ms>-<6 base36>`. The suffix of a stored group is its number within its run plus a
 * salt of the run: the group is found by its id without an index, and the ids of two runs differ.
 */

/**
 * Number of suffixes, 36⁶. The lower half numbers stored groups, the upper half is random for groups of single calls.
 */
const SUFFIXES = 36 ** 6;
const STORED = SUFFIXES / 2;

/** The id of stored group `seq`, opened at `nowMs`. */
export function groupIdOf(nowMs: number, seq: number, salt: number): string {
  return idWith(nowMs, (seq + salt) % STORED);
}

/** An id for a group of single calls; `random` is uniform in [0, 1). */
export function windowIdOf(nowMs: number, random: number): string {
  return idWith(nowMs, STORED + Math.floor(random * STORED));
}

/** The number of the stored group that may have this id; null if none can. The caller compares the group's own id. */
export function groupSeqOfId(id: string, salt: number): number | null {
  const suffix = /^pg-\d{13}-([0-9a-z]{6})$/.exec(id)?.[1];
  if (suffix === undefined) return null;
  const salted = Number.parseInt(suffix, 36);
  return salted >= STORED ? null : (salted - (salt % STORED) + STORED) % STORED;
}

/** A run's salt: FNV-1a of its id, so that Workers and the run object compute the same one. */
export function groupSalt(runId: string): number {
  let hash = 0x811c9dc5;
  for (const char of runId) {
    hash ^= char.codePointAt(0) ?? 0;
    hash = Math.imul(hash, 0x01000193) >>> 0;
  }
  return hash % STORED;
}

function idWith(nowMs: number, suffix: number): string {
  return `pg-${String(nowMs).padStart(13, "0")}-${suffix.toString(36).padStart(6, "0")}`;
}
