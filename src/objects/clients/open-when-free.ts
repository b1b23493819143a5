/** Opening a child run that may wait for its parent's capacity, for as long as its client stays. */
import type { Objects } from "../address.ts";
import { LONG_POLL_MS } from "../../limits.ts";
import type { OpenChildReply, RunInput } from "../methods/runs.ts";
import type { IdempotencyKey } from "../methods/types.ts";
import { RunCaller } from "./caller.ts";

export type OpenWhenFreeDeps = {
  /** The parent. */
  run: RunCaller;
  objects: Objects;
  /** Wall clock, ms since 1970. */
  now: () => number;
  /** Aborts when the client has left. */
  signal: AbortSignal;
};

type Child = { settings: RunInput; id: string; named: IdempotencyKey | null };

/**
 * Asks the parent until the child is open, refused, or `waitMs` are over. Each call waits a part of that time and keeps the
 * request's place; calls are repeated while the object restarts, for a child opens once by its id. A child that opens after
 * its client has left is cancelled, unless an Idempotency-Key lets the client come back for it.
 */
export async function openWhenFree(deps: OpenWhenFreeDeps, child: Child, waitMs: number): Promise<OpenChildReply> {
  const { run, objects, now, signal } = deps;
  const { settings, id, named } = child;
  const withdraw = (): void => void run.notify((stub) => stub.withdraw(id));
  signal.addEventListener("abort", withdraw, { once: true });
  const untilMs = now() + waitMs;
  let isRepeated = false;
  for (;;) {
    const opened = await run.callWithRetry<OpenChildReply>((stub) => {
      const leftMs = Math.max(0, untilMs - now());
      const wait = { waitMs: Math.min(leftMs, LONG_POLL_MS), isLast: leftMs <= LONG_POLL_MS, isRepeated };
      isRepeated = true;
      return stub.openChild(settings, id, named, wait);
    });
    if (opened.ok && named === null && signal.aborted) {
      await new RunCaller(objects, id).callWithRetry<boolean>((stub) => stub.end("cancelled"));
    }
    const isOver = opened.ok || opened.reason.reason !== "no_capacity" || now() >= untilMs || signal.aborted;
    if (!isOver) continue;
    signal.removeEventListener("abort", withdraw);
    return opened;
  }
}
