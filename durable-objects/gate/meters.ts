/**
 * The rows of what attempts have cost at a gate: the sums of all runs in a row of `memory`, what each run has counted of them in
 * `metered`, and in `unread` the runs that may have counted more. Tables are made with their first row. `day` = days since 1970.
 */
import type { MeterSheet } from "../../src/gate/meter.ts";
import type { CountedRun, MeterRows } from "../../src/gate/meters.ts";
import type { Tables } from "../schema-version.ts";
import type { GateTable } from "./migrations.ts";

/** Its number in `memory`. */
const SUMS = 2;

type Counted = { number: number; sheet: string; ended: number; day: number };

export class StoredMeters implements MeterRows {
  readonly #sql: SqlStorage;
  readonly #tables: Tables<GateTable>;

  /** @param tables With `memory`. */
  constructor(sql: SqlStorage, tables: Tables<GateTable>) {
    this.#sql = sql;
    this.#tables = tables;
  }

  sheet(): MeterSheet {
    const [row] = this.#sql.exec<{ body: string }>("SELECT body FROM memory WHERE id = ?", SUMS);
    return row === undefined ? {} : JSON.parse(row.body);
  }

  storeSheet(sheet: Readonly<MeterSheet>): void {
    this.#sql.exec("INSERT OR REPLACE INTO memory (id, body) VALUES (?, ?)", SUMS, JSON.stringify(sheet));
  }

  run(id: string): CountedRun | null {
    if (!this.#tables.has("metered")) return null;
    const [row] = this.#sql.exec<Counted>("SELECT number, sheet, ended, day FROM metered WHERE run = ?", id);
    return row === undefined
      ? null
      : { number: row.number, sheet: JSON.parse(row.sheet), hasEnded: row.ended === 1, day: row.day };
  }

  storeRun(id: string, { number, sheet, hasEnded, day }: CountedRun): void {
    this.#tables.make("metered");
    const values = [id, number, JSON.stringify(sheet), hasEnded ? 1 : 0, day];
    this.#sql.exec("INSERT OR REPLACE INTO metered (run, number, sheet, ended, day) VALUES (?, ?, ?, ?, ?)", ...values);
  }

  isUnread(id: string): boolean {
    if (!this.#tables.has("unread")) return false;
    return this.#sql.exec("SELECT 1 FROM unread WHERE run = ?", id).toArray().length > 0;
  }

  addUnread(id: string, day: number): void {
    this.#tables.make("unread");
    this.#sql.exec("INSERT OR REPLACE INTO unread (run, day) VALUES (?, ?)", id, day);
  }

  removeUnread(id: string): void {
    this.#sql.exec("DELETE FROM unread WHERE run = ?", id);
  }

  unreadAfter(after: string, most: number): string[] {
    if (!this.#tables.has("unread")) return [];
    const rows = this.#sql.exec<{ run: string }>(
      "SELECT run FROM unread WHERE run > ? ORDER BY run LIMIT ?",
      after,
      most,
    );
    return rows.toArray().map(({ run }) => run);
  }

  unreadCount(): number {
    if (!this.#tables.has("unread")) return 0;
    return this.#sql.exec<{ count: number }>("SELECT COUNT(*) AS count FROM unread").one().count;
  }

  drop(before: { ended: number; any: number }): void {
    if (this.#tables.has("metered")) {
      const { ended, any } = before;
      this.#sql.exec("DELETE FROM metered WHERE day < ? OR (ended = 1 AND day < ?)", any, ended);
    }
    if (this.#tables.has("unread")) this.#sql.exec("DELETE FROM unread WHERE day < ?", before.any);
  }
}
