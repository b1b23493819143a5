/** What a gate stores: a row of what it knows of its key, a row of what attempts have cost, and a row of how long they take. */
import type { StoredLatency } from "../../src/gate/latencies.ts";
import { EMPTY_MEMORY, type GateMemory } from "../../src/gate/memory.ts";
import type { MeterSheet } from "../../src/gate/meter.ts";

export class GateStore {
  readonly #sql: SqlStorage;
  #stored: GateMemory;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    this.#sql.exec("CREATE TABLE IF NOT EXISTS memory (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT");
    const body: Partial<GateMemory> = JSON.parse(this.#body(MEMORY) ?? "{}");
    this.#stored = { ...EMPTY_MEMORY, ...body };
  }

  /** What was stored last. */
  get stored(): GateMemory {
    return this.#stored;
  }

  store(memory: GateMemory): void {
    this.#stored = memory;
    this.#sql.exec("INSERT OR REPLACE INTO memory (id, body) VALUES (?, ?)", MEMORY, JSON.stringify(memory));
  }

  sheet(): MeterSheet {
    return JSON.parse(this.#body(METERS) ?? "{}");
  }

  storeSheet(sheet: Readonly<MeterSheet>): void {
    this.#sql.exec("INSERT OR REPLACE INTO memory (id, body) VALUES (?, ?)", METERS, JSON.stringify(sheet));
  }

  latencies(): StoredLatency[] {
    return JSON.parse(this.#body(LATENCIES) ?? "[]");
  }

  storeLatencies(latencies: readonly StoredLatency[]): void {
    this.#sql.exec("INSERT OR REPLACE INTO memory (id, body) VALUES (?, ?)", LATENCIES, JSON.stringify(latencies));
  }

  #body(id: number): string | null {
    return this.#sql.exec<{ body: string }>("SELECT body FROM memory WHERE id = ?", id).toArray()[0]?.body ?? null;
  }
}

/** The rows by number. */
const MEMORY = 1;
const METERS = 2;
const LATENCIES = 3;
