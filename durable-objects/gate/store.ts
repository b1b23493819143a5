/** What a gate stores of its key: a row of what it knows, and a row of how long attempts take. What they cost is in meters.ts. */
import type { StoredLatency } from "../../src/gate/latencies.ts";
import { EMPTY_MEMORY, type GateMemory } from "../../src/gate/memory.ts";
import type { Tables } from "../schema-version.ts";
import type { GateTable } from "./migrations.ts";

export class GateStore {
  readonly #sql: SqlStorage;
  #stored: GateMemory;

  constructor(sql: SqlStorage, tables: Tables<GateTable>) {
    this.#sql = sql;
    tables.make("memory");
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

/** The rows by number. Row 2 is in meters.ts. */
const MEMORY = 1;
const LATENCIES = 3;
