/**
 * The list of root runs, newest first, and the root budget of each day. What a run has spent or done is the run object's;
 * this one knows that it exists and, under a root budget, what it holds of the day it was opened on.
 *
 *   run  one row per root run, written when it is opened; `held_nano_usd` until it ends, then what it spent
 *   day  one row per UTC day with a root budget: what its runs hold and have spent
 */
import { DurableObject } from "cloudflare:workers";

/** A run's claim on the root budget of a day. */
export type DayHold = { day: string; nanoUsd: number; limitNanoUsd: number };

type RunRow = { opened: number; id: string; day: string | null; held_nano_usd: number; ended: number };

export class DirectoryObject extends DurableObject<object> {
  readonly #storage: DurableObjectStorage;
  readonly #sql: SqlStorage;

  constructor(ctx: DurableObjectState, env: object) {
    super(ctx, env);
    this.#storage = ctx.storage;
    this.#sql = ctx.storage.sql;
    this.#sql.exec(`
      CREATE TABLE IF NOT EXISTS run (opened INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, day TEXT,
        held_nano_usd INTEGER NOT NULL, ended INTEGER NOT NULL DEFAULT 0) STRICT;
      CREATE TABLE IF NOT EXISTS day (day TEXT PRIMARY KEY, committed_nano_usd INTEGER NOT NULL) STRICT, WITHOUT ROWID`);
  }

  /** Adds a run that is about to be opened. With `hold`, false and nothing added when the day's budget cannot cover it. */
  add(runId: string, hold: DayHold | null): { ok: true } | { ok: false; committedNanoUsd: number } {
    return this.#storage.transactionSync(() => {
      if (hold !== null) {
        const committedNanoUsd = this.#committed(hold.day);
        if (committedNanoUsd + hold.nanoUsd > hold.limitNanoUsd) return { ok: false, committedNanoUsd };
        this.#commit(hold.day, hold.nanoUsd);
      }
      this.#sql.exec(
        "INSERT INTO run (id, day, held_nano_usd) VALUES (?, ?, ?)",
        runId,
        hold?.day ?? null,
        hold?.nanoUsd ?? 0,
      );
      return { ok: true };
    });
  }

  /** A run has ended and spent this much of what it held. Counts once. */
  childEnded(runId: string, spentNanoUsd: number): void {
    this.#storage.transactionSync(() => {
      const run = this.#run(runId);
      if (run === null || run.ended === 1) return;
      if (run.day !== null) this.#commit(run.day, spentNanoUsd - run.held_nano_usd);
      this.#sql.exec("UPDATE run SET held_nano_usd = ?, ended = 1 WHERE id = ?", spentNanoUsd, runId);
    });
  }

  /** A run has deleted itself. Its day's figures stay. */
  forget(runId: string): void {
    this.#sql.exec("DELETE FROM run WHERE id = ?", runId);
  }

  /** A run's limit changes. False, with nothing changed, when the day's budget cannot cover it. */
  resizeChild(runId: string, nanoUsd: number, limitNanoUsd: number): boolean {
    return this.#storage.transactionSync(() => {
      const run = this.#run(runId);
      if (run === null || run.ended === 1) return false;
      // Opened before there was a root budget: no day holds anything for it.
      if (run.day === null) return true;
      const more = nanoUsd - run.held_nano_usd;
      if (more > 0 && this.#committed(run.day) + more > limitNanoUsd) return false;
      this.#commit(run.day, more);
      this.#sql.exec("UPDATE run SET held_nano_usd = ? WHERE id = ?", nanoUsd, runId);
      return true;
    });
  }

  /** A page of run ids, newest first, older than the run that `after` names (null = from the newest); null if none is so called. */
  page(after: string | null, limit: number): { ids: string[]; hasMore: boolean } | null {
    const cursor = after === null ? null : this.#run(after);
    if (after !== null && cursor === null) return null;
    const query = "SELECT * FROM run WHERE opened < ? ORDER BY opened DESC LIMIT ?";
    const rows = this.#sql.exec<RunRow>(query, cursor?.opened ?? Number.MAX_SAFE_INTEGER, limit + 1).toArray();
    return { ids: rows.slice(0, limit).map((row) => row.id), hasMore: rows.length > limit };
  }

  #run(runId: string): RunRow | null {
    return this.#sql.exec<RunRow>("SELECT * FROM run WHERE id = ?", runId).toArray()[0] ?? null;
  }

  #committed(day: string): number {
    const query = "SELECT committed_nano_usd AS committed FROM day WHERE day = ?";
    return this.#sql.exec<{ committed: number }>(query, day).toArray()[0]?.committed ?? 0;
  }

  #commit(day: string, nanoUsd: number): void {
    const query = `INSERT INTO day (day, committed_nano_usd) VALUES (?1, ?2)
      ON CONFLICT (day) DO UPDATE SET committed_nano_usd = committed_nano_usd + ?2`;
    this.#sql.exec(query, day, nanoUsd);
  }
}
