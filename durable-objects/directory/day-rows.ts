/** The rows of a day's budget in a directory object: what is committed of it, and leases, its own or those of the parts that it knows. */
import type { Lease } from "../../src/run/money/day-lease.ts";
import type { Tables } from "../schema-version.ts";
import type { OwnLease, PartRows } from "./day-part.ts";
import type { WholeRows } from "./day-whole.ts";
import type { DirectoryTable } from "./migrations.ts";

type LeaseRow = { no: number; nano_usd: number; limit_nano_usd: number | null };

/** The part that an object's own lease is stored under. */
const OWN = "";

export class DayRows implements PartRows, WholeRows {
  readonly #storage: DurableObjectStorage;
  readonly #tables: Tables<DirectoryTable>;

  constructor(storage: DurableObjectStorage, tables: Tables<DirectoryTable>) {
    this.#storage = storage;
    this.#tables = tables;
  }

  own(day: string): OwnLease | null {
    const row = this.#row(day, OWN);
    return row === null ? null : { no: row.no, nanoUsd: row.nano_usd, limitNanoUsd: row.limit_nano_usd };
  }

  putOwn(day: string, { no, nanoUsd, limitNanoUsd }: OwnLease): void {
    this.#put(day, OWN, { no, nano_usd: nanoUsd, limit_nano_usd: limitNanoUsd });
  }

  leaseOf(day: string, part: string): Lease {
    const row = this.#row(day, part);
    return row === null ? { no: 0, nanoUsd: 0 } : { no: row.no, nanoUsd: row.nano_usd };
  }

  putLeaseOf(day: string, part: string, { no, nanoUsd }: Lease): void {
    this.transaction(() => {
      this.commit(day, nanoUsd - this.leaseOf(day, part).nanoUsd);
      this.#put(day, part, { no, nano_usd: nanoUsd, limit_nano_usd: null });
    });
  }

  lessees(day: string): string[] {
    if (!this.#tables.has("lease")) return [];
    const query = "SELECT part FROM lease WHERE day = ? AND part <> ? AND nano_usd > 0";
    return this.#storage.sql
      .exec<{ part: string }>(query, day, OWN)
      .toArray()
      .map(({ part }) => part);
  }

  committed(day: string): number {
    const query = "SELECT committed_nano_usd AS committed FROM day WHERE day = ?";
    return this.#storage.sql.exec<{ committed: number }>(query, day).toArray()[0]?.committed ?? 0;
  }

  /** Adds to what is committed of a day. */
  commit(day: string, nanoUsd: number): void {
    const query = `INSERT INTO day (day, committed_nano_usd) VALUES (?1, ?2)
      ON CONFLICT (day) DO UPDATE SET committed_nano_usd = committed_nano_usd + ?2`;
    this.#storage.sql.exec(query, day, nanoUsd);
  }

  transaction(write: () => void): void {
    this.#tables.make("lease");
    this.#storage.transactionSync(write);
  }

  #row(day: string, part: string): LeaseRow | null {
    if (!this.#tables.has("lease")) return null;
    const query = "SELECT no, nano_usd, limit_nano_usd FROM lease WHERE day = ? AND part = ?";
    return this.#storage.sql.exec<LeaseRow>(query, day, part).toArray()[0] ?? null;
  }

  #put(day: string, part: string, { no, nano_usd, limit_nano_usd }: LeaseRow): void {
    const query = "INSERT OR REPLACE INTO lease (day, part, no, nano_usd, limit_nano_usd) VALUES (?, ?, ?, ?, ?)";
    this.#storage.sql.exec(query, day, part, no, nano_usd, limit_nano_usd);
  }
}
