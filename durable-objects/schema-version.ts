/**
 * The version of an object's rows, and how rows come to it. Each class has one append-only list of migrations, from version 1 on: a
 * landed one is never edited, because objects have run it. Newer code brings the tables of an object to its version when the object
 * begins, and stores the version; older code refuses that object then. See decisions/0016.
 */
import { newerRows } from "../src/newer-rows.ts";

/** A statement of a version: it makes a table or an index of it, or changes a table that an earlier one has made. */
export type Migration<Table extends string = string> = {
  readonly version: number;
  readonly table: Table;
  readonly sql: string;
  /**
   * The whole table as this statement leaves it. A new table is made with it in place of this statement and those before, because each
   * statement that changes a table costs rows.
   */
  readonly whole?: string;
};

/** Where the version is stored; the run has it in its table `meta`, under the same name. */
const KEY = "schema";

/** The version of rows that have none: it is not stored, because it says nothing and would cost a row. */
export const FIRST_SCHEMA_VERSION = 1;

/** The version of rows that these migrations lead to. */
export function versionOf(migrations: readonly Migration[]): number {
  return migrations.at(-1)?.version ?? FIRST_SCHEMA_VERSION;
}

/**
 * Brings the tables of an object from the version `stored` to that of `migrations`, and stores that with `store`, in one transaction. A
 * table that does not exist is made in its present form with its first row; where none exists, there is nothing to do. Throws if newer
 * code has written the rows, as after a deployment was rolled back: what this code does not know it would misread or drop.
 */
export function migrate(
  storage: DurableObjectStorage,
  migrations: readonly Migration[],
  stored: number,
  store: (version: number) => void,
): void {
  const known = versionOf(migrations);
  if (stored > known) throw newerRows(stored, known);
  if (stored === known) return;
  const made = tablesIn(storage.sql);
  const ofMade = migrations.filter(({ table }) => made.has(table));
  if (ofMade.length === 0) return;
  storage.transactionSync(() => {
    for (const { version, sql } of ofMade) if (version > stored) storage.sql.exec(sql);
    store(known);
  });
}

/** Makes tables in their present form, in one execution. Returns the rows that this has written, as the runtime counts them. */
export function makeTables(sql: SqlStorage, migrations: readonly Migration[], names: readonly string[]): number {
  return sql.exec(names.flatMap((name) => statementsOf(migrations, name)).join(";\n")).rowsWritten;
}

function statementsOf(migrations: readonly Migration[], name: string): string[] {
  const own = migrations.filter(({ table }) => table === name);
  const at = own.findLastIndex(({ whole }) => whole !== undefined);
  const whole = own[at]?.whole;
  return [...(whole === undefined ? [] : [whole]), ...own.slice(at + 1).map(({ sql }) => sql)];
}

/** The tables of an object. */
export function tablesIn(sql: SqlStorage): Set<string> {
  const tables = sql.exec<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table'").toArray();
  return new Set(tables.map(({ name }) => name));
}

/** Refuses a storage of a class without tables that newer code has written. Throws, so that no method of the object works. */
export function refuseNewerRows(storage: DurableObjectStorage): void {
  migrate(storage, [], storage.kv.get<number>(KEY) ?? FIRST_SCHEMA_VERSION, () => undefined);
}

/** The tables of an object whose version is an entry of its storage. Each is made when it is needed. */
export class Tables<Table extends string> {
  readonly #storage: DurableObjectStorage;
  readonly #migrations: readonly Migration<Table>[];
  readonly #made: Set<string>;

  /** Brings the tables to their present form. Throws if newer code has written them. */
  constructor(storage: DurableObjectStorage, migrations: readonly Migration<Table>[]) {
    this.#storage = storage;
    this.#migrations = migrations;
    migrate(storage, migrations, storage.kv.get<number>(KEY) ?? FIRST_SCHEMA_VERSION, (version) =>
      storage.kv.put(KEY, version),
    );
    this.#made = tablesIn(storage.sql);
  }

  has(table: Table): boolean {
    return this.#made.has(table);
  }

  /** Makes these tables, unless they are there: all of them or none. */
  make(...tables: readonly Table[]): void {
    const missing = tables.filter((table) => !this.#made.has(table));
    if (missing.length === 0) return;
    this.#storage.transactionSync(() => {
      makeTables(this.#storage.sql, this.#migrations, missing);
      const version = versionOf(this.#migrations);
      if (version > FIRST_SCHEMA_VERSION) this.#storage.kv.put(KEY, version);
    });
    for (const table of missing) this.#made.add(table);
  }

  /** The storage is being deleted: there are no tables any more. */
  forget(): void {
    this.#made.clear();
  }
}
