/**
 * The life of a batch as data and pure transitions. A transition that was made already changes nothing, so that each may
 * be tried again after a restart; each timestamp is set once. Times are unix seconds.
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

export type BatchStatus =
  | "validating"
  | "failed"
  | "in_progress"
  | "finalizing"
  | "completed"
  | "expired"
  | "cancelling"
  | "cancelled";

/** How a batch that was valid can end. */
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

/** When each status was reached; null = not yet, or never. */
export type BatchTimes = Readonly<Record<Exclude<BatchStatus, "validating">, number | null>>;

/** `failed` counts lines that were tried; one that a cancel or the window's end kept from running is neither. */
export type BatchCounts = { total: number; completed: number; failed: number };

/** All that is remembered of a batch. Plain JSON. */
export type Batch = {
  id: string;
  request: BatchRequest;
  status: BatchStatus;
  createdAtS: number;
  expiresAtS: number;
  times: BatchTimes;
  /** The one model of all lines; null before it is known and where they differ. */
  model: string | null;
  errors: readonly LineError[];
  counts: BatchCounts;
  /** null = none of its lines has been charged. */
  usage: BatchUsage | null;
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

/** A batch as it is created: about to be validated. */
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
    outputFileId: null,
    errorFileId: null,
  };
}

/** Whether nothing will change any more. */
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

/** What a batch leaves behind; a file without lines is none. */
export type BatchResult = Pick<Batch, "counts" | "usage" | "outputFileId" | "errorFileId">;

/** The batch is over. Status and files change together: clients that see the one look for the other. */
export function endBatch(batch: Batch, to: BatchEnd, { result, nowS }: { result: BatchResult; nowS: number }): Batch {
  return move({ ...batch, ...result }, { from: batch, to, nowS });
}

/** Whether the window has passed for a batch that it can still end. */
export function isPastWindow(batch: Batch, nowS: number): boolean {
  return NEXT[batch.status].includes("expired") && nowS >= batch.expiresAtS;
}

/**
 * Asks a batch to stop. One that is stopping, or has stopped, is answered as it is; one that ended otherwise is refused
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

/** `from` unchanged if it is there already, else `changed` with its new status; a way that does not exist is a bug. */
function move(
  changed: Batch,
  { from, to, nowS }: { from: Batch; to: Exclude<BatchStatus, "validating">; nowS: number },
): Batch {
  if (from.status === to) return from;
  if (!NEXT[from.status].includes(to)) throw new Error(`a batch that is ${from.status} cannot become ${to}`);
  return { ...changed, status: to, times: { ...from.times, [to]: nowS } };
}
