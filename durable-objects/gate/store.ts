/** What a gate stores: one row. */
import { EMPTY_MEMORY, type GateMemory } from "../../src/gate/memory.ts";

export class GateStore {
  readonly #sql: SqlStorage;
  #stored: GateMemory;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    this.#sql.exec("CREATE TABLE IF NOT EXISTS memory (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT");
    const row = this.#sql.exec<{ body: string }>("SELECT body FROM memory").toArray()[0];
    const body: Partial<GateMemory> = row === undefined ? {} : JSON.parse(row.body);
    this.#stored = { ...EMPTY_MEMORY, ...body };
  }

  /** What was stored last. */
  get stored(): GateMemory {
    return this.#stored;
  }

  store(memory: GateMemory): void {
    this.#stored = memory;
    this.#sql.exec("INSERT OR REPLACE INTO memory (id, body) VALUES (1, ?)", JSON.stringify(memory));
  }
}
