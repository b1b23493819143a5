/** What a job of the run's alarm is, and what jobs need of the object around them. */
import type { Amounts } from "../../../src/run/money/ledger.ts";
import type { Objects } from "../../../src/objects/address.ts";
import type { Due } from "../alarm-clock.ts";
import type { LeaseRecovery } from "../lease-recovery.ts";
import type { LogExport } from "../log/export.ts";
import type { RunMeters } from "../meters.ts";
import type { RunState } from "../state.ts";
import type { RunStore } from "../store/store.ts";
import type { Patches } from "../tree/patch.ts";
import type { Submit } from "../turns/commit-queue.ts";
import type { RunWebhooks } from "../webhooks.ts";

/**
 * Something that must happen even if the present instance of the object is gone. Whatever is due, an alarm does every job, and a job
 * without work does nothing: so what it does may be repeated at any time.
 */
export type AlarmJob = Due<RunState> & {
  /** What it does, for the log. */
  readonly name: string;
  /** Starts what nothing waits for, before the turn. */
  readonly start?: (run: RunState) => void;
  /** Changes the run, in the one turn that all jobs of an alarm share. */
  readonly change?: (run: RunState, nowMs: number) => void;
  /** Calls others, when that turn is stored. If it rejects, the jobs after it wait for the retry. */
  readonly act?: (run: RunState) => Promise<void>;
};

/** What the jobs need of the object around them. */
export type AlarmHost = {
  /** The run; null if it was never opened, or is deleted. */
  readonly run: RunState | null;
  submit: Submit;
  /** Whether a client follows a group at a socket. */
  isFollowed: (seq: number) => boolean;
  until: (ready: () => boolean, waitMs: number) => Promise<void>;
  /** Reports to the run's holder what it spent, if it is final. */
  report: () => Promise<void>;
  /** Reports to the list of runs how far the run is; never rejects. */
  reportSummary: () => Promise<void>;
  childEnded: (childId: string, spent: Amounts, overrun: Amounts | null) => Promise<void>;
  /** The export of the log; null = traces are not exported. */
  readonly logExport: Pick<LogExport, "delayMs" | "start"> | null;
  /** The deliveries to the operator's webhook. */
  readonly webhooks: Pick<RunWebhooks, "delayMs" | "start">;
  /** Reports to gates what attempts have cost, where no exchange has reported it. */
  readonly meters: Pick<RunMeters, "owes" | "report">;
  readonly patches: Pick<Patches, "settleReservation">;
  /** Deletes the run and everything it stores. */
  deleteRun: (run: RunState) => Promise<void>;
};

/** The object around the jobs. */
export type Around = {
  readonly objects: Objects;
  readonly store: RunStore;
  readonly recovery: LeaseRecovery;
  readonly host: AlarmHost;
};

/** Makes the job of one instance. `host` is being built: its members are there once a job is asked or done. */
export type MakeJob = (around: Around) => AlarmJob;
