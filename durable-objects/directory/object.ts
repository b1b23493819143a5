/**
 * The list of root runs, newest first: one row a run, written when it is opened. What a run has spent or done is the run
 * object's; this one only knows that it exists. Table `run (opened INTEGER PRIMARY KEY, id)`: rows live until retention
 * deletes their run.
 */
import { DurableObject } from "cloudflare:workers";

type RunRow = { opened: number; id: string };

export class DirectoryObject extends DurableObject {
  readonly #sql: SqlStorage;

  constructor(ctx: DurableObjectState, env: object) {
    super(ctx, env);
    this.#sql = ctx.storage.sql;
    this.#sql.exec(
      "CREATE TABLE IF NOT EXISTS run (opened INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL) STRICT",
    );
  }

  /** Adds a run that has just been opened. */
  add(runId: string): void {
    this.#sql.exec("INSERT INTO run (id) VALUES (?)", runId);
  }

  /** A page of run ids, newest first, older than the run that `after` names (null = from the newest); null if none is so called. */
  page(after: string | null, limit: number): { ids: string[]; hasMore: boolean } | null {
    const cursor =
      after === null
        ? null
        : (this.#sql.exec<RunRow>("SELECT opened, id FROM run WHERE id = ?", after).toArray()[0] ?? null);
    if (after !== null && cursor === null) return null;
    const query = "SELECT opened, id FROM run WHERE opened < ? ORDER BY opened DESC LIMIT ?";
    const rows = this.#sql.exec<RunRow>(query, cursor?.opened ?? Number.MAX_SAFE_INTEGER, limit + 1).toArray();
    return { ids: rows.slice(0, limit).map((row) => row.id), hasMore: rows.length > limit };
  }
}
