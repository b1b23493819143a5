/**
 * Calls of one run that ask its object for the same at the same time, in one isolate, share requests to it: while a request is under way,
 * the other calls collect, and the next takes all of them. Where the object is far away, the next does not wait for the one before: calls
 * collect for a part of the way there and back, so that several requests are under way, and a call waits for its own one only. Each call
 * belongs to one client's request, and ends with it; so every call waits a bounded time for another's request, and then makes one itself.
 * The object may be asked twice for a call, and must bear it.
 */
import {
  FAR_OBJECT_MS_MIN,
  PERMIT_GUARD_MS,
  PERMITS_PER_REQUEST_MAX,
  SHARED_REQUESTS_MAX,
  SHARING_RUNS_MAX,
} from "../../limits.ts";
import { BoundedMap } from "../../renewed/bounded-map.ts";
import { RenewedSet } from "../../renewed/set.ts";

export type SharedRequestDeps<Asked, Reply> = {
  /** Asks the object for all of these; replies in their order. */
  send: (asked: readonly Asked[]) => Promise<Reply[]>;
  /** Resolves when the promise has ended, with true; or with false after `ms`. It never rejects. */
  endedWithin: (promise: Promise<void>, ms: number) => Promise<boolean>;
  /** Epoch ms. */
  now: () => number;
};

type End<Reply> = { ok: true; reply: Reply } | { ok: false; error: unknown };
/** `ended` never rejects. */
type Request = { ended: Promise<void>; sentAtMs: number };
/** `sentIn`: the request that asks for the call; null = none does. */
type Waiting<Asked, Reply> = { asked: Asked; end: End<Reply> | null; sentIn: Request | null };
/** What waits of one run, and the requests that are under way, oldest first. */
type Collected<Asked, Reply> = { waiting: RenewedSet<Waiting<Asked, Reply>>; underWay: Request[] };
/** How long a call waits, and for which request, before it looks again. `isGuard`: one that has not ended by then is given up. */
type Wait = { request: Request; ms: number; isGuard: boolean };

/** The requests of this isolate that ask for the same, by run. */
export class SharedRequests<Asked, Reply> {
  /** A call whose client's request ends while it sends stays here, until another call of its run comes or newer runs take its place. */
  readonly #runs = new BoundedMap<string, Collected<Asked, Reply>>(SHARING_RUNS_MAX);
  readonly #distances = new BoundedMap<string, number>(SHARING_RUNS_MAX);

  /** Number of runs for which a request is under way. */
  get size(): number {
    return this.#runs.size;
  }

  /** The object's reply to one call. Rejects with what the request was rejected with that had the call. */
  async replyTo(runId: string, asked: Asked, deps: SharedRequestDeps<Asked, Reply>): Promise<Reply> {
    const collected = this.#collectedOf(runId);
    const own: Waiting<Asked, Reply> = { asked, end: null, sentIn: null };
    collected.waiting.add(own);
    try {
      while (own.end === null) {
        const wait = waitOf(own, collected, this.#distances.get(runId), deps.now());
        if (wait === null) await this.#sendAll(runId, collected, own, deps);
        else if (!(await deps.endedWithin(wait.request.ended, wait.ms)) && wait.isGuard)
          giveUp(collected, wait.request);
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
    const collected = { waiting: new RenewedSet<Waiting<Asked, Reply>>(), underWay: [] };
    this.#runs.set(runId, collected);
    return collected;
  }

  /** Asks for all that wait and are not asked for, `own` first. */
  async #sendAll(
    runId: string,
    collected: Collected<Asked, Reply>,
    own: Waiting<Asked, Reply>,
    { send, now }: SharedRequestDeps<Asked, Reply>,
  ): Promise<void> {
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const request: Request = { ended, sentAtMs: now() };
    collected.underWay.push(request);
    const others = [...collected.waiting].filter(
      (other) => other !== own && other.end === null && other.sentIn === null,
    );
    const sent = [own, ...others.slice(0, PERMITS_PER_REQUEST_MAX - 1)];
    for (const call of sent) call.sentIn = request;
    try {
      const replies = await send(sent.map(({ asked }) => asked));
      this.#arrived(runId, now() - request.sentAtMs);
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
    removeFrom(collected.underWay, request);
    resolve();
  }

  /** The distance of an object is what its fastest replies take: a busy object is not far. */
  #arrived(runId: string, tookMs: number): void {
    const known = this.#distances.get(runId) ?? tookMs;
    this.#distances.set(runId, tookMs < known ? tookMs : known + (tookMs - known) / DISTANCE_SAMPLES);
  }
}

/** Replies slower than the known distance that bring it to theirs: an object that has moved is soon known to be far. */
const DISTANCE_SAMPLES = 16;

/** What a call waits for; null = it makes a request. `distanceMs`: what the object's replies take; undefined = none has come yet. */
function waitOf<Asked, Reply>(
  { sentIn }: Waiting<Asked, Reply>,
  { underWay }: Collected<Asked, Reply>,
  distanceMs: number | undefined,
  nowMs: number,
): Wait | null {
  if (sentIn !== null) return { request: sentIn, ms: PERMIT_GUARD_MS, isGuard: true };
  const oldest = underWay[0];
  const newest = underWay.at(-1);
  if (oldest === undefined || newest === undefined) return null;
  const guarded: Wait = { request: oldest, ms: PERMIT_GUARD_MS, isGuard: true };
  const isFar = distanceMs !== undefined && distanceMs >= FAR_OBJECT_MS_MIN;
  if (!isFar || underWay.length >= SHARED_REQUESTS_MAX) return guarded;
  const leftMs = newest.sentAtMs + distanceMs / SHARED_REQUESTS_MAX - nowMs;
  if (leftMs >= PERMIT_GUARD_MS) return guarded;
  return leftMs <= 0 ? null : { request: newest, ms: leftMs, isGuard: false };
}

/** A request that does not end: its client's has ended, or the object is restarting. The first call that notices asks for all of its calls. */
function giveUp<Asked, Reply>({ waiting, underWay }: Collected<Asked, Reply>, request: Request): void {
  if (!removeFrom(underWay, request)) return;
  for (const call of waiting) if (call.sentIn === request) call.sentIn = null;
}

function removeFrom(requests: Request[], request: Request): boolean {
  const place = requests.indexOf(request);
  if (place !== -1) requests.splice(place, 1);
  return place !== -1;
}
