/**
 * The life of a batch as data and pure transitions. A repeated transition changes nothing, so that each can be retried
 * after a restart; each timestamp is set once. Times are unix seconds.
 *
 *     validating ─► in_progress ─► finalizing ─► completed
 *         │ └► failed    │  └─────────┴─────► expired
 *         └──────────────┴────────────┴─────► cancelling ─► cancelled
 */
import { BATCH_WINDOW_S } from "../limits.ts";
import type { BatchRequest } from "./create.ts";
import type { LineError } from "./line-error.ts";
import { refused, type Checked } from "./refusal.ts";
import type { BatchUsage } from "./usage.ts";

/** Why a line of a valid batch did not run. */
export type NotRun = "cancelled" | "expired";

export type BatchStatus =
  | "validating"
  | "failed"
  | "in_progress"
  | "finalizing"
  | "completed"
  | "expired"
  | "cancelling"
  | "cancelled";

/** The ends of a valid batch. */
export type BatchEnd = "completed" | "expired" | "cancelled";

const NEXT: Readonly<Record<BatchStatus, readonly BatchStatus[]>> = {
  validating: ["failed", "in_progress", "cancelling"],
  in_progress: ["finalizing", "expired", "cancelling"],
  finalizing: ["completed", "expired", "cancelling"],
  cancelling: ["cancelled"],
  completed: [],
  failed: [],
  expired: [],
  cancelled: [],
};

/** The time at which each status was reached; null = not yet, or never. */
export type BatchTimes = Readonly<Record<Exclude<BatchStatus, "validating">, number | null>>;

/** `failed` counts lines that ran; a line that was cancelled, or whose window ended first, counts as neither. */
export type BatchCounts = { total: number; completed: number; failed: number };

/** The record of a batch: plain JSON. */
export type Batch = {
  id: string;
  request: BatchRequest;
  status: BatchStatus;
  createdAtS: number;
  expiresAtS: number;
  times: BatchTimes;
  /** The model of all lines; null before it is known, and if lines differ. */
  model: string | null;
  errors: readonly LineError[];
  counts: BatchCounts;
  /** Null = no line was charged. */
  usage: BatchUsage | null;
  /** Lines that batches of their provider have answered, and what that saved; absent = all lines are sent live. */
  provider?: { completed: number; savedNanoUsd: number };
  /** Lines that have not run, of a batch whose document counts them; absent = none so far. */
  notRun?: Readonly<Record<NotRun, number>>;
  outputFileId: string | null;
  errorFileId: string | null;
};

const NEVER: BatchTimes = {
  failed: null,
  in_progress: null,
  finalizing: null,
  completed: null,
  expired: null,
  cancelling: null,
  cancelled: null,
};

/** A new batch, which is validated next. */
export function newBatch(id: string, request: BatchRequest, nowS: number): Batch {
  return {
    id,
    request,
    status: "validating",
    createdAtS: nowS,
    expiresAtS: nowS + BATCH_WINDOW_S,
    times: NEVER,
    model: null,
    errors: [],
    counts: { total: 0, completed: 0, failed: 0 },
    usage: null,
    ...(request.viaProvider === true ? { provider: { completed: 0, savedNanoUsd: 0 } } : {}),
    outputFileId: null,
    errorFileId: null,
  };
}

/** Whether the status is final. */
export function isFinal({ status }: Pick<Batch, "status">): boolean {
  return NEXT[status].length === 0;
}

/** Refuses the file. */
export function failBatch(batch: Batch, errors: readonly LineError[], nowS: number): Batch {
  return move({ ...batch, errors }, { from: batch, to: "failed", nowS });
}

/** The file is valid: its lines may run. */
export function startBatch(batch: Batch, lines: { total: number; model: string | null }, nowS: number): Batch {
  const { total, model } = lines;
  return move({ ...batch, model, counts: { ...batch.counts, total } }, { from: batch, to: "in_progress", nowS });
}

/** All lines have ended: their files are being written. */
export function finalizeBatch(batch: Batch, nowS: number): Batch {
  return move(batch, { from: batch, to: "finalizing", nowS });
}

/** The files that a batch leaves; a file without lines is not written. */
export type BatchResult = Pick<Batch, "counts" | "usage" | "outputFileId" | "errorFileId">;

/** The batch has ended. Status and files change together: clients that see the status read the files. */
export function endBatch(batch: Batch, to: BatchEnd, { result, nowS }: { result: BatchResult; nowS: number }): Batch {
  return move({ ...batch, ...result }, { from: batch, to, nowS });
}

/** Whether the window of a batch that has not ended has passed. */
export function isPastWindow(batch: Batch, nowS: number): boolean {
  return NEXT[batch.status].includes("expired") && nowS >= batch.expiresAtS;
}

/**
 * Cancels a batch. A batch that is being cancelled, or was, is returned as it is; a batch that ended otherwise is refused
 * with a 409.
 */
export function cancelBatch(batch: Batch, nowS: number): Checked<Batch> {
  const { status } = batch;
  if (status === "cancelling" || status === "cancelled") return { ok: true, value: batch };
  if (isFinal(batch)) {
    const message = `Cannot cancel a batch with status '${status}'.`;
    return refused({ message, param: null, code: null }, 409);
  }
  return { ok: true, value: move(batch, { from: batch, to: "cancelling", nowS }) };
}

/** `from` if it has that status already, else `changed` with the new status; throws for a transition that does not exist. */
function move(
  changed: Batch,
  { from, to, nowS }: { from: Batch; to: Exclude<BatchStatus, "validating">; nowS: number },
): Batch {
  if (from.status === to) return from;
  if (!NEXT[from.status].includes(to)) throw new Error(`a batch that is ${from.status} cannot become ${to}`);
  return { ...changed, status: to, times: { ...from.times, [to]: nowS } };
}
