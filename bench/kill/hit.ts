/** A kill of the gateway, and what it interrupted. */

/**
 * Times of a kill, `performance.now()`: the signal; when nothing of the dead process can be on its way any more; when the
 * next one listens.
 */
export type Kill = { atMs: number; overMs: number; upMs: number };

/** `opening`: the POST is on its way; `open`: the gateway has answered, and the client does not know that the group has ended. */
export type Phase = "before" | "opening" | "open" | "ended";

/** A kill as it hit one run. */
export type Hit = Kill & { phase: Phase };
