/**
 * Calls of one run whose clients leave at the same time, as those of a killed program do: they share calls to the run object. While one
 * is under way, the others collect, and the next takes all of them. Each of these calls belongs to one client's request, and ends with it;
 * so every request waits a bounded time for another's call, and then makes one itself. A call may be withdrawn twice.
 */
import { PERMIT_GUARD_MS, PERMITS_PER_REQUEST_MAX } from "../../limits.ts";
import { RenewedMap } from "../../renewed/map.ts";
import { RenewedSet } from "../../renewed/set.ts";

export type WithdrawalDeps = {
  /** Withdraws these calls in the run object. */
  send: (callIds: string[]) => Promise<void>;
  /** Resolves when the promise has ended, with true; or with false after `ms`. It never rejects. */
  endedWithin: (promise: Promise<void>, ms: number) => Promise<boolean>;
};

type Leaving = { callId: string; isOver: boolean };
type Desk = { leaving: RenewedSet<Leaving>; sending: Promise<void> | null };

/** The withdrawals of this isolate, by run. */
export class Withdrawals {
  readonly #desks = new RenewedMap<string, Desk>();

  /** Number of runs for which a withdrawal is under way. */
  get size(): number {
    return this.#desks.size;
  }

  /** Resolves when the call is withdrawn, or the object cannot be reached: then it notices by itself that the call's Worker is gone. */
  async withdraw(runId: string, callId: string, deps: WithdrawalDeps): Promise<void> {
    const desk = this.#deskOf(runId);
    const own: Leaving = { callId, isOver: false };
    desk.leaving.add(own);
    try {
      while (!own.isOver) {
        const { sending } = desk;
        if (sending === null) await sendAll(desk, own, deps);
        else if (!(await deps.endedWithin(sending, PERMIT_GUARD_MS)) && desk.sending === sending) {
          // Its request has ended, or the object is restarting: the first that notices withdraws all of them.
          desk.sending = null;
        }
      }
    } finally {
      desk.leaving.delete(own);
      if (desk.leaving.size === 0 && this.#desks.get(runId) === desk) this.#desks.delete(runId);
    }
  }

  #deskOf(runId: string): Desk {
    const known = this.#desks.get(runId);
    if (known !== undefined) return known;
    const desk = { leaving: new RenewedSet<Leaving>(), sending: null };
    this.#desks.set(runId, desk);
    return desk;
  }
}

/** Withdraws all that leave, `own` among them. */
async function sendAll(desk: Desk, own: Leaving, { send }: WithdrawalDeps): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  desk.sending = promise;
  const others = [...desk.leaving].filter((other) => other !== own && !other.isOver);
  const sent = [own, ...others.slice(0, PERMITS_PER_REQUEST_MAX - 1)];
  await send(sent.map(({ callId }) => callId)).catch(() => undefined);
  for (const call of sent) {
    call.isOver = true;
    // The requests of some have ended: these run no `finally` any more.
    desk.leaving.delete(call);
  }
  if (desk.sending === promise) desk.sending = null;
  resolve();
}
