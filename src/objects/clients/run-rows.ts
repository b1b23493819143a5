/** The rows of a list of runs: each is read by itself, so that one run that cannot be read takes no other with it. */
import { Refusal } from "../../errors.ts";
import { LIST_ROW_MS } from "../../limits.ts";
import { isOfNewerRows, NEWER_STORAGE } from "../../newer-rows.ts";
import { objectFailure } from "./retry.ts";

/** Why a list has no document of a run. */
export type UnreadCause = "unreadable" | "newer_storage" | "overloaded" | "deleted";

/** A run's row: what was read, or why there is nothing. */
export type RunRow<T> = { document: T } | { cause: UnreadCause };

export type RowDeps = {
  /** Rejects if `signal` aborts. */
  wait: (ms: number, signal: AbortSignal) => Promise<unknown>;
  /** Takes what an operator must see and a client must not. */
  log: (message: string, error: unknown) => void;
};

/** What each cause means, and what to do about it. */
export const UNREAD_MESSAGES: Readonly<Record<UnreadCause, string>> = {
  unreadable: "the run's object fails when it is read; the Worker's log has the error",
  newer_storage: NEWER_STORAGE.message,
  overloaded: `the run's object has more requests than it can take, or did not answer within ${LIST_ROW_MS} ms; read it again later`,
  deleted: "the run has no data any more; it is taken off the list",
};

/** Reads one row. Never rejects, and never takes longer than LIST_ROW_MS. `look`: the document, null = there is none. */
export async function readRow<T>(id: string, look: () => Promise<T | null>, deps: RowDeps): Promise<RunRow<T>> {
  const over = new AbortController();
  const late = deps.wait(LIST_ROW_MS, over.signal).then((): RunRow<T> => ({ cause: "overloaded" }));
  late.catch(() => undefined);
  try {
    const read = look().then((document): RunRow<T> => (document === null ? { cause: "deleted" } : { document }));
    return await Promise.race([read, late]);
  } catch (error) {
    if (isOfNewerRows(error)) return { cause: "newer_storage" };
    if (isPassing(error)) return { cause: "overloaded" };
    deps.log(`${id} cannot be read`, error);
    return { cause: "unreadable" };
  } finally {
    over.abort();
  }
}

/** Whether a later look may succeed. An object of another version is replaced within minutes. */
function isPassing(error: unknown): boolean {
  if (error instanceof Refusal) return error.reason.reason === "overloaded";
  return objectFailure(error) !== "bug";
}
