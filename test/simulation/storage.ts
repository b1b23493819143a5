/**
 * The storage of one object: SQLite in memory, of which a crash takes back what was not durable yet. What the object writes
 * between two commits is one transaction of SQLite.
 */
import { deserialize, serialize } from "node:v8";
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";

type Value = string | number | null | ArrayBuffer;

/** Effects of a storage. */
export type StorageDeps = {
  /** Calls back when a commit that begins now is durable. */
  commit: (durable: () => void) => void;
  /** Epoch ms. */
  nowMs: () => number;
  /** The alarm is to fire then; null = never. Called for durable alarms only. */
  alarmSet: (atMs: number | null) => void;
};

const WRITES = /^\s*(insert|update|delete|replace|create|drop|alter)/i;
/** Whether a query writes, by its text: the gateway has some hundred. */
const writing = new Map<string, boolean>();

function writes(query: string): boolean {
  let isWrite = writing.get(query);
  if (isWrite === undefined) {
    isWrite = WRITES.test(query);
    writing.set(query, isWrite);
  }
  return isWrite;
}

export class ObjectStorage {
  readonly #deps: StorageDeps;
  #database: DatabaseSync | null = null;
  #statements = new Map<string, StatementSync>();
  #isOpen = false;
  #depth = 0;
  /** Resolves with the commit that is under way; null = everything is durable. */
  #commit: { done: Promise<void>; resolve: () => void } | null = null;
  #alarmMs: number | null = null;
  #durableAlarmMs: number | null = null;
  /** The time of the alarm whose handler runs; null = none does. */
  #firingMs: number | null = null;
  /** An alarm that shows as set, and will not fire; null = there is none. */
  #forgottenMs: number | null = null;
  /** Counts the commits that a crash has undone, so that the events of theirs that are still queued do nothing. */
  #era = 0;

  constructor(deps: StorageDeps) {
    this.#deps = deps;
  }

  readonly sql = {
    exec: (query: string, ...bindings: Value[]) => this.#exec(query, bindings),
    get databaseSize(): number {
      return 4_096;
    },
  };

  /** Values by key. They are rows of a table that the first value makes, so that they are in the transactions of the others. */
  readonly kv = {
    get: (key: string): unknown => {
      if (!this.#hasValues()) return undefined;
      const [row] = this.#exec("SELECT value FROM _cf_KV WHERE key = ?", [key]);
      return row?.["value"] instanceof Uint8Array ? deserialize(row["value"]) : undefined;
    },
    put: (key: string, value: unknown): void => {
      this.#exec("CREATE TABLE IF NOT EXISTS _cf_KV (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID", []);
      this.#exec("INSERT OR REPLACE INTO _cf_KV VALUES (?, ?)", [key, new Uint8Array(serialize(value)).buffer]);
    },
    delete: (key: string): boolean =>
      this.#hasValues() && this.#exec("DELETE FROM _cf_KV WHERE key = ?", [key]).rowsWritten > 0,
  };

  /** Resolves once everything that was written is durable; null = it is. */
  get durable(): Promise<void> | null {
    return this.#commit?.done ?? null;
  }

  get isEmpty(): boolean {
    if (this.#database === null) return true;
    return this.#exec("SELECT name FROM sqlite_master WHERE type = 'table'", []).toArray().length === 0;
  }

  get alarmMs(): number | null {
    return this.#durableAlarmMs;
  }

  transactionSync<T>(write: () => T): T {
    this.#writes();
    this.#depth += 1;
    const name = `nested_${this.#depth}`;
    this.#prepared(`SAVEPOINT ${name}`).run();
    try {
      const written = write();
      this.#prepared(`RELEASE ${name}`).run();
      return written;
    } catch (error) {
      this.#prepared(`ROLLBACK TO ${name}`).run();
      this.#prepared(`RELEASE ${name}`).run();
      throw error;
    } finally {
      this.#depth -= 1;
    }
  }

  sync(): Promise<void> {
    return this.durable ?? Promise.resolve();
  }

  getAlarm(): Promise<number | null> {
    return Promise.resolve(this.#alarmMs ?? this.#forgottenMs);
  }

  /**
   * The platform knows an alarm by its time, in whole milliseconds and not in the past. One that a handler sets to its own time is no other
   * to it: it will have fired when the handler ends.
   */
  setAlarm(atMs: number): Promise<void> {
    const wholeMs = Math.max(Math.floor(atMs), Math.floor(this.#deps.nowMs()));
    this.#writes();
    const isForgotten = wholeMs === this.#firingMs;
    this.#alarmMs = isForgotten ? null : wholeMs;
    this.#forgottenMs = isForgotten ? wholeMs : null;
    return Promise.resolve();
  }

  deleteAlarm(): Promise<void> {
    this.#writes();
    this.#alarmMs = null;
    this.#forgottenMs = null;
    return Promise.resolve();
  }

  /** Deletes the alarm too. It is durable when it resolves. */
  deleteAll(): Promise<void> {
    this.#settle();
    this.#database?.close();
    this.#database = null;
    this.#statements = new Map();
    this.#alarmMs = null;
    this.#forgottenMs = null;
    this.#announceAlarm();
    return Promise.resolve();
  }

  /**
   * The alarm has begun to fire: it is set no more, unless its handler sets it. One that fires again, after a failure or as a duplicate, is
   * not the one that was set meanwhile and is due later: that stays.
   */
  alarmFires(): void {
    if (this.#alarmMs !== null && this.#alarmMs > this.#deps.nowMs()) return;
    this.#firingMs = this.#alarmMs;
    this.#alarmMs = null;
    this.#durableAlarmMs = null;
  }

  /** The handler of an alarm has ended. */
  alarmFired(): void {
    this.#firingMs = null;
  }

  /** No instance is in memory: thousands of sleeping objects keep their rows only. */
  forgetStatements(): void {
    this.#statements = new Map();
  }

  /** A crash: what was not durable has never been. */
  crash(): void {
    this.#era += 1;
    if (this.#isOpen) this.#database?.exec("ROLLBACK");
    this.#isOpen = false;
    this.#depth = 0;
    this.#commit = null;
    this.#alarmMs = this.#durableAlarmMs;
    // Statements of tables that were never made would be wrong.
    this.forgetStatements();
  }

  #hasValues(): boolean {
    if (this.#database === null) return false;
    return this.#exec("SELECT 1 FROM sqlite_master WHERE name = '_cf_KV'", []).toArray().length > 0;
  }

  #exec(query: string, bindings: readonly Value[]): Cursor {
    const isWrite = writes(query);
    if (isWrite) this.#writes();
    if (bindings.length === 0 && isWrite) {
      this.#opened().exec(query);
      return new Cursor([], 1);
    }
    const statement = this.#prepared(query);
    const values = bindings.map((value): SQLInputValue =>
      value instanceof ArrayBuffer ? new Uint8Array(value) : value,
    );
    if (!isWrite) return new Cursor(statement.all(...values), 0);
    return new Cursor([], Number(statement.run(...values).changes));
  }

  #prepared(query: string): StatementSync {
    let statement = this.#statements.get(query);
    if (statement === undefined) {
      statement = this.#opened().prepare(query);
      this.#statements.set(query, statement);
    }
    return statement;
  }

  #opened(): DatabaseSync {
    this.#database ??= new DatabaseSync(":memory:");
    return this.#database;
  }

  /** Something is written: a transaction is open until the commit that begins now is durable. */
  #writes(): void {
    if (!this.#isOpen) {
      this.#prepared("BEGIN").run();
      this.#isOpen = true;
    }
    if (this.#commit !== null) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#commit = { done: promise, resolve };
    const era = this.#era;
    this.#deps.commit(() => {
      if (era === this.#era) this.#settle();
    });
  }

  #settle(): void {
    if (this.#isOpen) this.#prepared("COMMIT").run();
    this.#isOpen = false;
    const commit = this.#commit;
    this.#commit = null;
    this.#announceAlarm();
    commit?.resolve();
  }

  #announceAlarm(): void {
    if (this.#alarmMs === this.#durableAlarmMs) return;
    this.#durableAlarmMs = this.#alarmMs;
    this.#deps.alarmSet(this.#alarmMs);
  }
}

/** What a query has brought, as the platform's cursor gives it. */
class Cursor {
  readonly rowsWritten: number;
  readonly rowsRead: number;
  readonly #rows: readonly Record<string, unknown>[];

  constructor(rows: readonly Record<string, unknown>[], rowsWritten: number) {
    this.#rows = rows;
    this.rowsWritten = rowsWritten;
    this.rowsRead = rows.length;
  }

  toArray(): readonly Record<string, unknown>[] {
    return this.#rows;
  }

  one(): Record<string, unknown> {
    const [row] = this.#rows;
    if (row === undefined || this.#rows.length > 1) throw new Error(`one row was expected, not ${this.#rows.length}`);
    return row;
  }

  [Symbol.iterator](): Iterator<Record<string, unknown>> {
    return this.#rows[Symbol.iterator]();
  }
}
