/**
 * Calls of one run that ask its object for the same at the same time, in one isolate, share requests to it: while one request is under way,
 * the other calls collect, and the next takes all of them. Each call belongs to one client's request, and ends with it; so every call waits a
 * bounded time for another's request, and then makes one itself. The object may be asked twice for a call, and must bear it.
 */
import { PERMIT_GUARD_MS, PERMITS_PER_REQUEST_MAX, SHARING_RUNS_MAX } from "../../limits.ts";
import { BoundedMap } from "../../renewed/bounded-map.ts";
import { RenewedSet } from "../../renewed/set.ts";

export type SharedRequestDeps<Asked, Reply> = {
  /** Asks the object for all of these; replies in their order. */
  send: (asked: readonly Asked[]) => Promise<Reply[]>;
  /** Resolves when the promise has ended, with true; or with false after `ms`. It never rejects. */
  endedWithin: (promise: Promise<void>, ms: number) => Promise<boolean>;
};

type End<Reply> = { ok: true; reply: Reply } | { ok: false; error: unknown };
type Waiting<Asked, Reply> = { asked: Asked; end: End<Reply> | null };
/** What waits of one run. `sending`: the request that is under way; null = none is. */
type Collected<Asked, Reply> = { waiting: RenewedSet<Waiting<Asked, Reply>>; sending: Promise<void> | null };

/** The requests of this isolate that ask for the same, by run. */
export class SharedRequests<Asked, Reply> {
  /** A call whose client's request ends while it sends stays here, until another call of its run comes or newer runs take its place. */
  readonly #runs = new BoundedMap<string, Collected<Asked, Reply>>(SHARING_RUNS_MAX);

  /** Number of runs for which a request is under way. */
  get size(): number {
    return this.#runs.size;
  }

  /** The object's reply to one call. Rejects with what the request was rejected with that had the call. */
  async replyTo(runId: string, asked: Asked, deps: SharedRequestDeps<Asked, Reply>): Promise<Reply> {
    const collected = this.#collectedOf(runId);
    const own: Waiting<Asked, Reply> = { asked, end: null };
    collected.waiting.add(own);
    try {
      while (own.end === null) {
        const { sending } = collected;
        if (sending === null) await sendAll(collected, own, deps);
        else if (!(await deps.endedWithin(sending, PERMIT_GUARD_MS)) && collected.sending === sending) {
          // Its request has ended, or the object is restarting: the first call that notices asks for all of them.
          collected.sending = null;
        }
      }
      if (own.end.ok) return own.end.reply;
      throw own.end.error;
    } finally {
      collected.waiting.delete(own);
      if (collected.waiting.size === 0 && this.#runs.get(runId) === collected) this.#runs.delete(runId);
    }
  }

  #collectedOf(runId: string): Collected<Asked, Reply> {
    const known = this.#runs.get(runId);
    if (known !== undefined) return known;
    const collected = { waiting: new RenewedSet<Waiting<Asked, Reply>>(), sending: null };
    this.#runs.set(runId, collected);
    return collected;
  }
}

/** Asks for all that wait, `own` first. */
async function sendAll<Asked, Reply>(
  collected: Collected<Asked, Reply>,
  own: Waiting<Asked, Reply>,
  { send }: Pick<SharedRequestDeps<Asked, Reply>, "send">,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  collected.sending = promise;
  const others = [...collected.waiting].filter((other) => other !== own && other.end === null);
  const sent = [own, ...others.slice(0, PERMITS_PER_REQUEST_MAX - 1)];
  try {
    const replies = await send(sent.map(({ asked }) => asked));
    for (const [position, reply] of replies.entries()) {
      const call = sent[position];
      if (call !== undefined) call.end ??= { ok: true, reply };
    }
  } catch (error) {
    for (const call of sent) call.end ??= { ok: false, error };
  }
  for (const call of sent) {
    call.end ??= { ok: false, error: new Error("the request was answered without a reply to this call") };
    // The requests of some have ended: these remove nothing themselves any more.
    collected.waiting.delete(call);
  }
  if (collected.sending === promise) collected.sending = null;
  resolve();
}
