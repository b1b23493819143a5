/** Decides the next step for a batch at a provider, and what an answer of the provider means for it. Pure. */
import type { PageRest } from "../../run/steps/provider-settle.ts";
import {
  PROVIDER_CANCEL_MS_MAX,
  PROVIDER_FIND_MS,
  PROVIDER_POLL_GROWTH,
  PROVIDER_POLL_MS_MAX,
  PROVIDER_RETRY_MS,
  PROVIDER_RETRY_MS_MAX,
} from "../../limits.ts";
import type { ProviderGroup } from "../../objects/methods/provider-batch.ts";
import type { BatchEnd, Part } from "./part.ts";

/**
 * `find`: search for a batch whose creation had no reply. `end`: no answer of it will come any more; `rest` says what holds for
 * the calls that it has not answered.
 */
export type Step =
  | { do: "wait" | "upload" | "create" | "find" | "look" | "cancel" | "read" }
  | { do: "end"; rest: PageRest };

/** The next step of a batch that is due. */
export function nextStep(part: Part, about: ProviderGroup, nowMs: number): Step {
  if (nowMs < dueMs(part, about)) return { do: "wait" };
  const isOver = isOverAt(about, nowMs);
  // Nobody waits for what the provider answers after that.
  const isLate = isOver && nowMs >= lastMs(part, about);
  if (part.end !== null) return isLate ? { do: "end", rest: "lost" } : { do: "read" };
  if (part.batchId !== null) {
    if (isLate) return { do: "end", rest: "lost" };
    return { do: isOver && part.cancelledAtMs === null ? "cancel" : "look" };
  }
  if (part.createdAtMs !== null) return isLate ? { do: "end", rest: "lost" } : { do: "find" };
  if (isOver) return { do: "end", rest: "unsent" };
  return { do: part.fileId === null ? "upload" : "create" };
}

/** When the next step of a batch is due: at the latest when the group leaves its provider. */
export function dueMs(part: Part, about: ProviderGroup): number {
  const leavesMs = part.cancelledAtMs !== null ? Infinity : about.isStopped ? 0 : about.liveAtMs;
  // A step that has failed since then has its own time.
  return part.dueAtMs <= leavesMs || part.failures > 0 ? part.dueAtMs : leavesMs;
}

function isOverAt({ isStopped, liveAtMs }: ProviderGroup, nowMs: number): boolean {
  return isStopped || nowMs >= liveAtMs;
}

/** When the gateway gives up a batch that it tried to cancel. */
function lastMs({ cancelledAtMs, end }: Part, { isStopped, liveAtMs, deadlineAtMs }: ProviderGroup): number {
  const cancelledMs = cancelledAtMs ?? (isStopped ? Infinity : liveAtMs);
  // The answers of a batch that has ended are worth waiting for.
  if (end !== null || cancelledMs === Infinity) return Math.max(deadlineAtMs, cancelledAtMs ?? 0);
  return cancelledMs + PROVIDER_CANCEL_MS_MAX;
}

/** What a provider answers when it is polled for a batch. */
export type BatchLook =
  | { state: "working" }
  | ({ state: "ended" } & BatchEnd)
  /** It has refused the whole batch, and worked on none of it. `isFull`: because too much is enqueued there already. */
  | { state: "failed"; isFull: boolean }
  /** The provider no longer has it. */
  | { state: "gone" };

/** The batch after a step, or how it ends. `releases`: calls that are in no batch yet would end the same way. */
export type After = { part: Part } | { rest: PageRest; releases: boolean };

export function afterLook(part: Part, look: BatchLook, about: ProviderGroup, nowMs: number): After {
  switch (look.state) {
    case "working": {
      const looks = part.looks + 1;
      return { part: { ...part, failures: 0, looks, dueAtMs: nowMs + pollDelayMs({ ...part, looks }, about) } };
    }
    case "ended": {
      const { outputFileId, errorFileId, completed } = look;
      const end = { outputFileId, errorFileId, completed };
      return { part: { ...part, failures: 0, end, dueAtMs: nowMs } };
    }
    case "failed":
      if (!look.isFull || isOverAt(about, nowMs)) return { rest: "unsent", releases: !look.isFull };
      return { part: { ...createdAnew(part), dueAtMs: nowMs + PROVIDER_POLL_MS_MAX } };
    case "gone":
      return { rest: "lost", releases: false };
  }
}

/** The batch whose creation had no reply: its id. Null: there is none so far. `pending`: one may be it, which shows when it ends. */
export type Found = string | null | { pending: true };

/** After a search for a batch whose creation had no reply. */
export function afterFind(part: Part, found: Found, about: ProviderGroup, nowMs: number): Part {
  if (typeof found === "string") return created(part, found, about, nowMs);
  if (found !== null) {
    const looks = part.looks + 1;
    return { ...part, failures: 0, looks, dueAtMs: nowMs + pollDelayMs({ ...part, looks }, about) };
  }
  const isGivenUp = part.createdAtMs === null || nowMs >= part.createdAtMs + PROVIDER_FIND_MS;
  if (!isGivenUp) return { ...part, failures: 1, dueAtMs: nowMs + PROVIDER_RETRY_MS };
  return { ...createdAnew(part), dueAtMs: nowMs };
}

/** The provider has made the batch. */
export function created(part: Part, batchId: string, about: ProviderGroup, nowMs: number): Part {
  return { ...part, batchId, failures: 0, dueAtMs: nowMs + pollDelayMs(part, about) };
}

function createdAnew(part: Part): Part {
  return { ...part, batchId: null, createdAtMs: null, creation: part.creation + 1, failures: 0, looks: 0 };
}

/** A request has failed in a way that is worth a retry. */
export function afterFailure(part: Part, retryAfterMs: number | null, nowMs: number): Part {
  const backOffMs = PROVIDER_RETRY_MS * 2 ** Math.min(part.failures, 10);
  const delayMs = Math.min(PROVIDER_RETRY_MS_MAX, Math.max(retryAfterMs ?? 0, backOffMs));
  return { ...part, failures: part.failures + 1, dueAtMs: nowMs + delayMs };
}

/** What holds for the calls of a batch that its files do not mention. `answered`: number of calls that they mention. */
export function restOf({ completed }: BatchEnd, answered: number): PageRest {
  return completed !== null && answered >= completed ? "unsent" : "lost";
}

function pollDelayMs({ looks, cancelledAtMs }: Part, { pollMs }: ProviderGroup): number {
  // A cancellation takes minutes, and the rest of the group waits for it.
  return cancelledAtMs !== null ? pollMs : Math.min(PROVIDER_POLL_MS_MAX, pollMs * PROVIDER_POLL_GROWTH ** looks);
}
