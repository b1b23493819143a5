/**
 * A part of the list of root runs, newest first, and a lease of the root budget of each day; or the whole of these budgets. A run's
 * figures are in its own object; this one stores that the run exists and, under a root budget, what is reserved for it on the day it was
 * opened. Its methods are described in src/objects/methods/directory-api.ts, which object has what in address.ts.
 *
 *   run  one row per root run, written when it is opened; `opened`: its place in the list, by which it is found; `held_nano_usd`: reserved until
 *        the run ends, then what it spent; `body` how far it is, as it last reported at `at_ms`
 *   past  one row per hour: what runs spent in it that are not listed any more
 *   day  one row per UTC day with a root budget: what its runs have reserved and spent; in the whole, also what parts have leased
 *   lease  one row per UTC day with a root budget: the part's lease of it; in the whole, one per part
 */
import { DurableObject } from "cloudflare:workers";
import type {
  DayReservation,
  DayReply,
  DirectoryApi,
  ListedRun,
  StoredSummary,
} from "../../src/objects/methods/directory-api.ts";
import { directoryPartOf, dayWholeOf, type Objects } from "../../src/objects/address.ts";
import { withRetry } from "../../src/objects/clients/retry.ts";
import { LIST_PLACES_READ_MAX, OVERVIEW_HOURS, OVERVIEW_RUNS_MAX } from "../../src/limits.ts";
import { hasSummary, historyAfter, hourOf, readRow, rowText } from "../../src/log/overview/history.ts";
import { addPast, addRun, noOverview, type Overview } from "../../src/log/overview/overview.ts";
import type { Lease, LeaseReply, LeaseRequest } from "../../src/run/money/day-lease.ts";
import { Tables } from "../schema-version.ts";
import { DayPart } from "./day-part.ts";
import { DayRows } from "./day-rows.ts";
import { DayWhole } from "./day-whole.ts";
import { MIGRATIONS } from "./migrations.ts";

type SummaryColumns = { at_ms: number | null; body: string | null };
type RunRow = SummaryColumns & { opened: number; id: string; day: string | null; held_nano_usd: number; ended: number };
type PastRow = { hour: number; nano_usd: number };
type ListRow = SummaryColumns & { opened: number; id: string };

export class DirectoryObject extends DurableObject<Objects> implements DirectoryApi {
  readonly #storage: DurableObjectStorage;
  readonly #sql: SqlStorage;
  readonly #days: DayRows;
  readonly #part: DayPart;
  readonly #whole: DayWhole;

  constructor(ctx: DurableObjectState, env: Objects) {
    super(ctx, env);
    const tables = new Tables(ctx.storage, MIGRATIONS);
    tables.make("run", "past", "day");
    this.#storage = ctx.storage;
    this.#sql = ctx.storage.sql;
    this.#days = new DayRows(ctx.storage, tables);
    const part = ctx.id.toString();
    const ask = (day: string, request: LeaseRequest): Promise<LeaseReply> =>
      withRetry(async () => await dayWholeOf(env).lease(day, part, request), DELAYS);
    this.#part = new DayPart({ rows: this.#days, ask });
    const release = async (of: string, day: string, no: number): Promise<Lease> =>
      await directoryPartOf(env, of).release(day, no);
    const timer = (ms: number, elapsed: () => void): (() => void) => {
      const handle = setTimeout(elapsed, ms);
      return () => clearTimeout(handle);
    };
    this.#whole = new DayWhole({ rows: this.#days, release, timer });
  }

  add({ id, openedAt }: ListedRun, reservation: DayReservation | null, summary?: StoredSummary): DayReply {
    return this.#storage.transactionSync(() => {
      if (reservation !== null && this.#near(id, openedAt) === null) {
        const committedNanoUsd = this.#days.committed(reservation.day);
        if (committedNanoUsd + reservation.nanoUsd > reservation.limitNanoUsd) return { ok: false, committedNanoUsd };
      }
      this.#insert({ id, openedAt }, reservation, summary);
      return { ok: true };
    });
  }

  async addOfDay(run: ListedRun, reservation: DayReservation, summary: StoredSummary): Promise<DayReply> {
    if (this.#near(run.id, run.openedAt) !== null) return { ok: true };
    const reply = await this.#part.cover(reservation.day, reservation, () => this.#insert(run, reservation, summary));
    // The same request, sent before and repeated, may have been covered while this one waited.
    return this.#near(run.id, run.openedAt) === null ? reply : { ok: true };
  }

  lease(day: string, part: string, request: LeaseRequest): Promise<LeaseReply> {
    return this.#whole.lease(day, part, request);
  }

  release(day: string, knownNo: number): Lease {
    return this.#part.release(day, knownNo);
  }

  async childEnded(runId: string, spentNanoUsd: number, overrunNanoUsd = Infinity, openedAt?: number): Promise<void> {
    const run = this.#run(runId, openedAt);
    if (run === null) return;
    // A run that no day has reserved anything for counts in none.
    const counted = run.day === null ? spentNanoUsd : Math.min(spentNanoUsd, run.held_nano_usd + overrunNanoUsd);
    if (run.ended === 0)
      this.#storage.transactionSync(() => {
        if (run.day !== null) this.#days.commit(run.day, counted - run.held_nano_usd);
        this.#sql.exec("UPDATE run SET held_nano_usd = ?, ended = 1 WHERE opened = ?", counted, run.opened);
      });
    // Also if it reports again: the instance that it told first may have ended before the whole knew.
    if (run.day !== null) await this.#part.coverOverrun(run.day);
  }

  summarise(runId: string, { text, atMs }: StoredSummary, isFirst = false, openedAt?: number): void {
    const known = this.#run(runId, openedAt);
    if (known === null || (known.body !== null && (isFirst || hasSummary(known.body, text)))) return;
    const body = bodyAfter(known, { text, atMs });
    this.#sql.exec("UPDATE run SET at_ms = ?, body = ? WHERE opened = ?", atMs, body, known.opened);
  }

  overview(sinceMs: number): Overview {
    const [overview, times] = [noOverview(), { nowMs: Date.now(), sinceMs }];
    const listed = this.newest(null, OVERVIEW_RUNS_MAX + 1, true);
    if (listed.length > OVERVIEW_RUNS_MAX) overview.partsCut = 1;
    for (const { summary } of listed.slice(0, OVERVIEW_RUNS_MAX)) {
      const row = summary === undefined ? null : readRow(summary.text);
      if (row !== null && summary !== undefined) addRun(overview, row, summary.atMs, times);
    }
    const query = "SELECT hour, nano_usd FROM past WHERE hour > ?";
    const past = this.#sql.exec<PastRow>(query, hourOf(times.nowMs) - OVERVIEW_HOURS).toArray();
    for (const { hour, nano_usd: nanoUsd } of past) addPast(overview, hour, nanoUsd, times);
    return overview;
  }

  forget(runId: string, openedAt?: number): void {
    const run = this.#run(runId, openedAt);
    if (run === null) return;
    this.#storage.transactionSync(() => {
      this.#keepPast(run);
      this.#sql.exec("DELETE FROM run WHERE opened = ?", run.opened);
    });
  }

  resizeChild(runId: string, nanoUsd: number, limitNanoUsd: number, openedAt?: number): DayReply | Promise<DayReply> {
    const run = this.#run(runId, openedAt);
    if (run === null || run.ended === 1) return { ok: false, committedNanoUsd: 0 };
    // Opened before there was a root budget: no day has reserved anything for it.
    if (run.day === null) return { ok: true };
    const more = nanoUsd - run.held_nano_usd;
    const resize = (): void => this.#resize(run, nanoUsd);
    if (more > 0 && this.#days.own(run.day) !== null)
      return this.#part.cover(run.day, { nanoUsd: more, limitNanoUsd }, resize);
    const committedNanoUsd = this.#days.committed(run.day);
    if (more > 0 && committedNanoUsd + more > limitNanoUsd) return { ok: false, committedNanoUsd };
    this.#storage.transactionSync(resize);
    return { ok: true };
  }

  newest(before: ListedRun | null, limit: number, withSummaries = false): ListedRun[] {
    const query = `SELECT opened, id, iif(?4, body, NULL) AS body, at_ms FROM run
      WHERE opened <= ?1 AND (opened < ?1 OR id < ?2) ORDER BY opened DESC LIMIT ?3`;
    const { openedAt, id } = before ?? { openedAt: Number.MAX_SAFE_INTEGER, id: "" };
    const rows = this.#sql.exec<ListRow>(query, openedAt, id, limit, withSummaries ? 1 : 0).toArray();
    return rows.map(({ opened, id: runId, body: text, at_ms: atMs }) => {
      const listed = { openedAt: opened, id: runId };
      return text === null || atMs === null ? listed : { ...listed, summary: { text, atMs } };
    });
  }

  countBefore(before: ListedRun, limit: number): number {
    const query = `SELECT count(*) AS older FROM (
      SELECT 1 FROM run WHERE opened <= ?1 AND (opened < ?1 OR run.id < ?2) LIMIT ?3)`;
    return this.#sql.exec<{ older: number }>(query, before.openedAt, before.id, limit).one().older;
  }

  /** Keeps what a run has spent in the last hours that is taken off the list: what was spent today does not become less. */
  #keepPast({ body }: SummaryColumns): void {
    const row = readRow(body ?? "");
    const first = hourOf(Date.now()) - OVERVIEW_HOURS;
    const spent = Object.entries(row?.history.hours ?? {}).filter(
      ([hour, use]) => Number(hour) > first && use.nanoUsd > 0,
    );
    if (spent.length === 0) return;
    this.#sql.exec("DELETE FROM past WHERE hour <= ?", first);
    for (const [hour, { nanoUsd }] of spent) {
      const add = `INSERT INTO past (hour, nano_usd) VALUES (?1, ?2)
        ON CONFLICT (hour) DO UPDATE SET nano_usd = nano_usd + ?2`;
      this.#sql.exec(add, Number(hour), nanoUsd);
    }
  }

  /** The first free place from `openedAt` on: runs that several isolates open may have the same. */
  #placeFrom(openedAt: number): number {
    const isTaken = (place: number): boolean =>
      this.#sql.exec("SELECT 1 FROM run WHERE opened = ?", place).toArray().length > 0;
    let place = openedAt;
    while (isTaken(place)) place += 1;
    return place;
  }

  #run(runId: string, openedAt: number | undefined): RunRow | null {
    const near = openedAt === undefined ? null : this.#near(runId, openedAt);
    return near ?? this.#sql.exec<RunRow>("SELECT * FROM run WHERE id = ?", runId).toArray()[0] ?? null;
  }

  /** The row of a run that has a place from `openedAt` on, which was free then or soon after. */
  #near(runId: string, openedAt: number): RunRow | null {
    const query = "SELECT * FROM run WHERE opened >= ?1 AND opened < ?1 + ?2 AND id = ?3";
    return this.#sql.exec<RunRow>(query, openedAt, LIST_PLACES_READ_MAX, runId).toArray()[0] ?? null;
  }

  /** Adds a run with its reservation, unless it is there. */
  #insert({ id, openedAt }: ListedRun, reservation: DayReservation | null, summary: StoredSummary | undefined): void {
    if (this.#near(id, openedAt) !== null) return;
    if (reservation !== null) this.#days.commit(reservation.day, reservation.nanoUsd);
    const insert = "INSERT INTO run (opened, id, day, held_nano_usd, at_ms, body) VALUES (?, ?, ?, ?, ?, ?)";
    const { day, nanoUsd } = reservation ?? { day: null, nanoUsd: 0 };
    const body = summary === undefined ? null : bodyAfter(NO_SUMMARY, summary);
    this.#sql.exec(insert, this.#placeFrom(openedAt), id, day, nanoUsd, summary?.atMs ?? null, body);
  }

  /** Changes a run's reservation, unless the run has ended. */
  #resize({ id, opened }: RunRow, nanoUsd: number): void {
    const run = this.#near(id, opened);
    if (run === null || run.ended === 1) return;
    if (run.day !== null) this.#days.commit(run.day, nanoUsd - run.held_nano_usd);
    this.#sql.exec("UPDATE run SET held_nano_usd = ? WHERE opened = ?", nanoUsd, opened);
  }
}

const NO_SUMMARY: SummaryColumns = { at_ms: null, body: null };

/** What a run's row has of a summary: its text, with the history of the one before. */
function bodyAfter(known: SummaryColumns, { text, atMs }: StoredSummary): string {
  const next = readRow(text);
  if (next === null) return text;
  const row = known.body === null ? null : readRow(known.body);
  return rowText(text, historyAfter(row, next.reported, { knownMs: known.at_ms ?? atMs, atMs }));
}

const DELAYS = { wait: (ms: number) => scheduler.wait(ms), random: Math.random };
