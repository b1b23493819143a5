/**
 * The reserve of free space of a gateway on its own machine: below it nothing opens, so that what is open has room to end. A disk that is
 * full stops every run of it, even reads, and R2's stand-in answers nothing at all. The process that started workerd knows the free bytes
 * and answers at the binding `DISK`, which no deployment has: there this costs a look at one property.
 */
import type { Context } from "hono";
import type { AppEnv } from "./context.ts";
import { isChange, type Route } from "../contract/routes/record.ts";
import { Refusal, type Reason } from "../errors.ts";
import { DISK_ANSWER_MS_MAX, DISK_FULL_RETRY_MS, DISK_LOOK_MS, DISK_RESERVE_BYTES } from "../limits.ts";

/** Whether a route may store something that nobody waits for yet: such as a new one. */
export function mayOpen(route: Route): boolean {
  return isChange(route) && route.opensNothing !== true;
}

/** Why so much may not be stored; null if it may, or if nothing is known of the disk. `sentBytes`: as announced, 0 = unknown. */
export function diskReason(freeBytes: number | null, sentBytes: number): Reason | null {
  const announcedBytes = Number.isFinite(sentBytes) ? sentBytes : 0;
  if (freeBytes === null || freeBytes - announcedBytes >= DISK_RESERVE_BYTES) return null;
  const message =
    "the disk of the gateway has too little free space to open anything more: what is left is kept for what is open; its operator must free some; retry later";
  return { reason: "storage_full", message, retryAfterMs: DISK_FULL_RETRY_MS };
}

/** The free space as it was known last. Asks for it at most once per `DISK_LOOK_MS`: requests meanwhile use the last figure. */
export class DiskGauge {
  #freeBytes: number | null = null;
  #askedAtMs = Number.NEGATIVE_INFINITY;

  /** Null = nothing is known yet. A figure that does not arrive leaves the one before. */
  async freeBytes(ask: () => Promise<number>, nowMs: number): Promise<number | null> {
    if (this.#freeBytes !== null && nowMs - this.#askedAtMs < DISK_LOOK_MS) return this.#freeBytes;
    this.#askedAtMs = nowMs;
    const answered = await ask().catch(() => Number.NaN);
    if (Number.isFinite(answered)) this.#freeBytes = answered;
    return this.#freeBytes;
  }
}

/** The gauge of this isolate. */
const gauge = new DiskGauge();

/**
 * Refuses a request while the disk has less than the reserve, or would have with what it sends: for routes that may open something
 * (`mayOpen`).
 */
export async function keepReserve(c: Context<AppEnv>): Promise<void> {
  const { DISK: disk } = c.env;
  if (disk === undefined) return;
  const ask = async (): Promise<number> => {
    const answer = await disk.fetch("http://disk/free", { signal: AbortSignal.timeout(DISK_ANSWER_MS_MAX) });
    return answer.ok ? Number(await answer.text()) : Number.NaN;
  };
  const reason = diskReason(await gauge.freeBytes(ask, Date.now()), Number(c.req.header("content-length") ?? 0));
  if (reason !== null) throw new Refusal(reason);
}
