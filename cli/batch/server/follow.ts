/** Polls a batch until it has ended. */
import { Batch } from "./documents.ts";
import { Problem } from "./problem.ts";
import { Rate, type Progress } from "../progress.ts";
import type { Api, Document } from "./api.ts";

/** Time between two polls, ms: small batches end in a moment, large ones take hours. */
const POLL_MS_MIN = 200;
const POLL_MS_MAX = 3_000;

const FINAL = new Set(["completed", "failed", "expired", "cancelled"]);

/**
 * A batch that has ended. `costUsd`: what the run has spent since the batch began; null if the server does not say.
 */
export type Ended = { status: string; document: Document; costUsd: number | null };

/** `now`: ms. `sleep` rejects when the command is stopped. */
export type FollowDeps = {
  now: () => number;
  sleep: (delayMs: number) => Promise<void>;
  progress: (progress: Progress) => void;
};

/** @param batch `spentUsd`: when the batch began. */
export async function follow(
  api: Pick<Api, "batch" | "spentUsd">,
  { id, spentUsd }: { id: string; spentUsd: number | null },
  { now, sleep, progress }: FollowDeps,
): Promise<Ended> {
  const rate = new Rate();
  let pollMs = POLL_MS_MIN;
  for (;;) {
    const document = await api.batch(id);
    const batch = Batch.safeParse(document);
    if (!batch.success) throw new Problem("The server returned a batch without a status.", { isTransient: false });
    const { status, request_counts: counts } = batch.data;
    const { total, completed, failed } = counts;
    const done = completed + failed;
    // If the server did not say at the beginning what was spent, it is not polled for it.
    const spentNowUsd = spentUsd === null ? null : await api.spentUsd();
    const costUsd = spentUsd === null || spentNowUsd === null ? null : spentNowUsd - spentUsd;
    progress({
      phase: phaseOf(status),
      unit: "lines",
      done,
      total,
      failed,
      perSecond: rate.add(now(), done),
      costUsd,
    });
    if (FINAL.has(status)) return { status, document, costUsd };
    await sleep(pollMs);
    pollMs = Math.min(POLL_MS_MAX, pollMs * 1.5);
  }
}

/** The known statuses of the API; any other is shown as `running`. */
function phaseOf(status: string) {
  const known = ["validating", "finalizing", "cancelling", "completed", "failed", "expired", "cancelled"];
  return known.includes(status) ? status : "running";
}
