/** What a tape stores: its exchanges, and which of them the calls of a run have had. */
import { sketchOf } from "../../src/recordings/sketch.ts";
import {
  CASSETTE_BYTES_MAX,
  CASSETTE_EXCHANGES_MAX,
  CASSETTE_MISSES_KEPT,
  CASSETTE_PAGE_CHARS,
  CASSETTE_USES_MAX,
} from "../../src/limits.ts";
import type { TapeFacts, TapeLine } from "../../src/objects/methods/cassette-api.ts";
import { BoundedMap } from "../../src/renewed/bounded-map.ts";
import { Tables } from "../schema-version.ts";
import { MIGRATIONS } from "./migrations.ts";

/** An attempt of a run's call. `session`: the run's tree, whose calls count together. */
export type Use = { session: string; attempt: string; key: string };

export class TapeStore {
  readonly #sql: SqlStorage;
  /** By session, then key: how many answers it has had. */
  readonly #had = new BoundedMap<string, Map<string, number>>(SESSIONS_IN_MEMORY);
  #uses: number;
  #facts: TapeFacts;

  constructor(storage: DurableObjectStorage) {
    const { sql } = storage;
    this.#sql = sql;
    new Tables(storage, MIGRATIONS).make("exchange", "had", "facts");
    this.#uses = sql.exec<{ uses: number }>("SELECT COUNT(*) AS uses FROM had").one().uses;
    const [row] = sql.exec<{ body: string }>("SELECT body FROM facts WHERE id = 1").toArray();
    this.#facts = row === undefined ? EMPTY : { ...EMPTY, ...factsIn(row.body) };
  }

  get facts(): TapeFacts {
    return this.#facts;
  }

  /** The exchange that an attempt has had, or null. */
  hadBy({ session, attempt, key }: Use): number | null {
    const query = "SELECT n FROM had WHERE session = ? AND attempt = ? AND key = ?";
    return this.#sql.exec<{ n: number }>(query, session, attempt, key).toArray()[0]?.n ?? null;
  }

  /** The exchange that an earlier attempt of the same call has had, or null. */
  hadByCall({ session, attempt, key }: Use): number | null {
    const call = attempt.slice(0, attempt.lastIndexOf("."));
    const query =
      "SELECT n FROM had WHERE session = ? AND attempt > ? AND attempt < ? AND key = ? ORDER BY n DESC LIMIT 1";
    return this.#sql.exec<{ n: number }>(query, session, `${call}.`, `${call}/`, key).toArray()[0]?.n ?? null;
  }

  /** How many answers to a request its session has had. */
  countHad(session: string, key: string): number {
    return this.#hadOf(session).get(key) ?? 0;
  }

  note({ session, attempt, key }: Use, n: number): void {
    const had = this.#hadOf(session);
    had.set(key, Math.max(n, had.get(key) ?? 0));
    if (this.#uses >= CASSETTE_USES_MAX) this.#forgetOthers(session);
    // A session with more calls than that counts on in memory.
    if (this.#uses >= CASSETTE_USES_MAX) return;
    this.#sql.exec(
      "INSERT OR REPLACE INTO had (session, attempt, key, n) VALUES (?, ?, ?, ?)",
      session,
      attempt,
      key,
      n,
    );
    this.#uses += 1;
  }

  line(key: string, n: number): string | null {
    const query = "SELECT line FROM exchange WHERE key = ? AND n = ?";
    return this.#sql.exec<{ line: string }>(query, key, n).toArray()[0]?.line ?? null;
  }

  /** Stores an exchange, in place of another one of this place. False = there is no room. */
  put({ key, line, text }: TapeLine, n: number, nowMs: number): boolean {
    const bytes = bytesOf(line);
    const query = "SELECT bytes FROM exchange WHERE key = ? AND n = ?";
    const before = this.#sql.exec<{ bytes: number }>(query, key, n).toArray()[0]?.bytes ?? null;
    const exchanges = this.#facts.exchanges + (before === null ? 1 : 0);
    const total = this.#facts.bytes + bytes - (before ?? 0);
    if (exchanges > CASSETTE_EXCHANGES_MAX || total > CASSETTE_BYTES_MAX) return false;
    this.#sql.exec(
      "INSERT INTO exchange (key, n, sketch, bytes, line) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET bytes = excluded.bytes, line = excluded.line",
      ...[key, n, sketchOf(text).buffer, bytes, line],
    );
    this.#setFacts({ ...this.#facts, exchanges, bytes: total, recordedAtMs: nowMs });
    return true;
  }

  /** Counts an answer that is not on the tape. */
  countUnrecorded(): void {
    this.#setFacts({ ...this.#facts, unrecorded: this.#facts.unrecorded + 1 });
  }

  /** Counts a request that is not on the tape, and keeps what it was refused with. */
  noteMiss(message: string): void {
    const lastMisses = [message, ...this.#facts.lastMisses].slice(0, CASSETTE_MISSES_KEPT);
    this.#setFacts({ ...this.#facts, misses: this.#facts.misses + 1, lastMisses });
  }

  lines(from: number): string[] {
    const found: string[] = [];
    let chars = 0;
    for (const { line } of this.#sql.exec<{ line: string }>(
      "SELECT line FROM exchange WHERE rowid >= ? ORDER BY rowid",
      from,
    )) {
      found.push(line);
      chars += line.length;
      if (chars >= CASSETTE_PAGE_CHARS) break;
    }
    return found;
  }

  /** The sketches of all exchanges, with their numbers. */
  *sketches(): Iterable<{ number: number; sketch: Uint32Array }> {
    const rows = this.#sql.exec<{ rowid: number; sketch: ArrayBuffer }>("SELECT rowid, sketch FROM exchange");
    for (const { rowid, sketch } of rows) yield { number: rowid, sketch: new Uint32Array(sketch) };
  }

  lineNumber(number: number): string | null {
    const query = "SELECT line FROM exchange WHERE rowid = ?";
    return this.#sql.exec<{ line: string }>(query, number).toArray()[0]?.line ?? null;
  }

  /** The number of exchanges of a key. */
  countOf(key: string): number {
    return this.#sql.exec<{ n: number }>("SELECT COUNT(*) AS n FROM exchange WHERE key = ?", key).one().n;
  }

  clear(): void {
    this.#sql.exec("DELETE FROM exchange");
    this.#sql.exec("DELETE FROM had");
    this.#uses = 0;
    this.#had.clear();
    this.#setFacts(EMPTY);
  }

  #setFacts(facts: TapeFacts): void {
    this.#facts = facts;
    this.#sql.exec("INSERT OR REPLACE INTO facts (id, body) VALUES (1, ?)", JSON.stringify(facts));
  }

  #hadOf(session: string): Map<string, number> {
    const known = this.#had.get(session);
    const had = known ?? new Map<string, number>();
    if (known === undefined) {
      const query = "SELECT key, MAX(n) AS n FROM had WHERE session = ? GROUP BY key";
      for (const { key, n } of this.#sql.exec<{ key: string; n: number }>(query, session)) had.set(key, n);
    }
    this.#had.set(session, had);
    return had;
  }

  #forgetOthers(session: string): void {
    this.#sql.exec("DELETE FROM had WHERE session <> ?", session);
    this.#uses = this.#sql.exec<{ uses: number }>("SELECT COUNT(*) AS uses FROM had").one().uses;
    for (const other of [...this.#had.keys()]) if (other !== session) this.#had.delete(other);
  }
}

/** Sessions whose counts are in memory; those of the others are read from the rows again. */
const SESSIONS_IN_MEMORY = 64;

const EMPTY: TapeFacts = { exchanges: 0, bytes: 0, unrecorded: 0, recordedAtMs: null, misses: 0, lastMisses: [] };

function factsIn(body: string): Partial<TapeFacts> {
  return JSON.parse(body);
}

/** As a line of a file. */
function bytesOf(line: string): number {
  return new TextEncoder().encode(line).length + 1;
}
