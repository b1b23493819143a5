/**
 * The `meta` table: single values of a run, as text. Each has a row, but the settings, which are beside the version: every run has both,
 * and a row costs. This file is the only one that knows their keys and how each is written; docs/storage.md lists them. Objects in use hold
 * rows under these keys: renaming one needs a migration.
 */
import * as z from "zod";
import { zeroTotals, type Totals } from "../../../src/run/measures/totals.ts";
import type { StoredCredit } from "../../../src/run/credit.ts";
import { EXPORT_START, type ExportCursor } from "../../../src/log/otlp/batch.ts";
import type { RunSettings, RunStatus } from "../../../src/objects/methods/runs.ts";
import type { PendingWebhook } from "../../../src/run/webhooks.ts";
import { FIRST_SCHEMA_VERSION, versionOf } from "../../schema-version.ts";
import type { Rows } from "./sql.ts";
import { MIGRATIONS } from "./tables.ts";

/** Statistics of groups: the slots of all groups, and of those groups that have at least two. */
export type GroupCounts = { slots: number; parallelGroups: number; parallelSlots: number };

/** All counters of a run at one time. */
export type CounterValues = { totals: Totals; groups: GroupCounts };

/** The values by name. What a getter returns if the row is missing is in the table below. */
type Values = {
  /** The version of the rows: see ../../schema-version.ts. */
  schemaVersion: number;
  /** null = the run was never opened. */
  settings: RunSettings | null;
  /** The status that was set last; null = the run was neither opened nor ended. */
  status: Exclude<RunStatus, "escalated"> | null;
  /** Whether something in the run has escalated. */
  isEscalated: boolean;
  /** When the run ended, epoch ms; null = it has not ended. */
  endedAtMs: number | null;
  /** Number of instances of the object that have found groups open. */
  epoch: number;
  /** Whether the holder of the run's budget knows what it spent. */
  isReported: boolean;
  /** Whether the gates have all that the ended run has counted. */
  isMetered: boolean;
  /** Whether the holder may have reserved more for this run than its limits: a patch was interrupted. */
  isReservationInDoubt: boolean;
  /** Whether a large group was uploaded: bodies of it may be in R2. */
  hasBodies: boolean;
  /** Bytes of the run's files, uploads and contexts, as their object has reported last; and of bodies of its groups in R2. */
  filesBytes: number;
  bodiesBytes: number;
  /** UTF-8 bytes that clients have added to the log. */
  clientLogBytes: number;
  /** The parts of the budget and the width that instances of the gateway hold. */
  credits: StoredCredit[];
  /** How far the log is exported to the operator's collector. */
  exported: ExportCursor;
  /** Events that the operator's webhook has not accepted yet. */
  webhooks: readonly PendingWebhook[];
  /** Values of the counters when the run's statistics were last reset. */
  statsBaseline: CounterValues;
  /** Values of the counters when the run's usage was last reset. */
  usageBaseline: CounterValues;
};

/** A column of the table that holds values: its statements get the row's key, and the text after it. */
type Place = { readonly read: string; readonly write: string };

const VALUE: Place = {
  read: "SELECT value AS text FROM meta WHERE key = ?",
  write: "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
};

/** Beside the version, whose row is written with it if it is not there. */
const BESIDE_VERSION: Place = {
  read: "SELECT more AS text FROM meta WHERE key = ?",
  write: `INSERT INTO meta (key, value, more) VALUES (?, '${versionOf(MIGRATIONS)}', ?)
    ON CONFLICT (key) DO UPDATE SET more = excluded.more`,
};

/** How a value is stored. `place`: absent = it is the value of its row. */
type Column<T> = {
  key: string;
  place?: Place;
  missing: T;
  parse: (text: string) => T;
  format: (value: T) => string;
};

const counters = z.object({ totals: z.custom<Totals>(), groups: z.custom<GroupCounts>() });

const pendingWebhooks = z.array(z.object({ id: z.string(), body: z.string(), tries: z.number(), atMs: z.number() }));

const exportCursor = z.object({ seq: z.number(), tries: z.number(), dropped: z.number() });

function number<T extends number | null>(key: string, missing: T): Column<number | T> {
  return { key, missing, parse: Number, format: String };
}

function baseline(key: string): Column<CounterValues> {
  return {
    key,
    get missing(): CounterValues {
      return { totals: zeroTotals(), groups: { slots: 0, parallelGroups: 0, parallelSlots: 0 } };
    },
    parse: (text) => {
      const { totals, groups } = counters.parse(JSON.parse(text));
      // Counters that did not exist when the row was written start at zero.
      return { totals: { ...zeroTotals(), ...totals }, groups };
    },
    format: (value) => JSON.stringify(value),
  };
}

function flag(key: string): Column<boolean> {
  return { key, missing: false, parse: (text) => text === "1", format: (value) => (value ? "1" : "0") };
}

const COLUMNS: { readonly [Name in keyof Values]: Column<Values[Name]> } = {
  schemaVersion: number("schema", FIRST_SCHEMA_VERSION),
  settings: {
    key: "schema",
    place: BESIDE_VERSION,
    missing: null,
    // Runs that were opened before there were tools have none.
    parse: (text) => ({ tools: [], ...(JSON.parse(text) as Omit<RunSettings, "tools">) }),
    format: (value) => JSON.stringify(value),
  },
  status: { key: "status", missing: null, parse: (text) => text as Exclude<RunStatus, "escalated">, format: String },
  isEscalated: flag("escalated"),
  endedAtMs: number("ended", null),
  epoch: number("epoch", 0),
  isReported: flag("reported"),
  isMetered: flag("metered"),
  isReservationInDoubt: flag("hold_in_doubt"),
  hasBodies: flag("bodies"),
  filesBytes: number("files_bytes", 0),
  bodiesBytes: number("bodies_bytes", 0),
  clientLogBytes: number("client_log", 0),
  credits: {
    key: "credits",
    missing: [],
    parse: (text) => JSON.parse(text) as StoredCredit[],
    format: (value) => JSON.stringify(value),
  },
  exported: {
    key: "exported",
    missing: EXPORT_START,
    parse: (text) => exportCursor.parse(JSON.parse(text)),
    format: (value) => JSON.stringify(value),
  },
  webhooks: {
    key: "webhooks",
    missing: [],
    parse: (text) => pendingWebhooks.parse(JSON.parse(text)),
    format: (value) => JSON.stringify(value),
  },
  statsBaseline: baseline("base_stats"),
  usageBaseline: baseline("base_usage"),
};

export class Meta {
  readonly #rows: Rows;

  constructor(rows: Rows) {
    this.#rows = rows;
  }

  /** Whether the run stores anything: an object that was never opened has not even this table. */
  get exists(): boolean {
    return this.#rows.has("meta");
  }

  get<Name extends keyof Values>(name: Name): Values[Name] {
    const column: Column<Values[Name]> = COLUMNS[name];
    const { read } = column.place ?? VALUE;
    const text = this.#rows.first<{ text: string | null }>("meta", read, column.key)?.text ?? null;
    return text === null ? column.missing : column.parse(text);
  }

  set<Name extends keyof Values>(name: Name, value: Values[Name]): void {
    const column: Column<Values[Name]> = COLUMNS[name];
    const { write } = column.place ?? VALUE;
    this.#rows.write("meta", write, column.key, column.format(value));
  }
}
