/** Follows a group in its run object, across restarts of that object. */
import type { RunCaller } from "../caller.ts";
import type { EndedReply, GroupView, SlotView } from "../../methods/groups.ts";
import { Refusal } from "../../../errors.ts";
import { RPC_WAIT_MS } from "../../../limits.ts";
import { WaitingSocket } from "../run-socket.ts";
import { SeenSlots } from "./seen-slots.ts";

/** What an answer needs of its group. */
export type GroupSource = Pick<GroupReader, "ended" | "look" | "slotsFrom"> & {
  /** Every slot once, as it ends; those that end together in one list. */
  slotsAsTheyEnd: () => AsyncGenerator<SlotView[]>;
};

/**
 * A reader requests what there is, which waits for a moment in the run object; if nothing comes, it waits at a socket, so
 * that the object can sleep.
 */
export class GroupReader {
  readonly #run: RunCaller;
  readonly #seq: number;
  readonly #signal: AbortSignal;
  readonly #readerId = crypto.randomUUID();

  /** @param signal Aborts when the client has left: what waits then rejects with a Refusal. */
  constructor(run: RunCaller, seq: number, signal: AbortSignal) {
    this.#run = run;
    this.#seq = seq;
    this.#signal = signal;
  }

  /** Resolves when the group has ended. */
  ended(): Promise<GroupView> {
    return this.look(Infinity);
  }

  /** The group as it is now; waits up to `waitMs` for its end. */
  async look(waitMs = 0): Promise<GroupView> {
    const untilMs = Date.now() + waitMs;
    let socket: WaitingSocket | null = null;
    try {
      for (;;) {
        const leftMs = Math.max(0, untilMs - Date.now());
        const group = await this.#view(socket === null ? Math.min(leftMs, RPC_WAIT_MS) : 0);
        if (group.status !== "running" || Date.now() >= untilMs) return group;
        socket = this.#wait(socket, null);
        const changed = socket.next();
        await (leftMs === Infinity ? changed : Promise.race([changed, scheduler.wait(untilMs - Date.now())]));
        this.#checkClient();
      }
    } finally {
      socket?.close();
    }
  }

  /** A page of slots in input order. */
  slotsFrom(index: number): Promise<SlotView[]> {
    return this.#run.callWithRetry<SlotView[]>((run) => run.results(this.#seq, index));
  }

  /**
   * Every slot once, as it ends, those that end together in one list; a restart may change the order of those that had
   * ended by then. `cursor`: slots up to there are left out, and those that were `seen` elsewhere.
   */
  async *slotsAsTheyEnd(
    cursor: EndedReply["cursor"] | null = null,
    seen = new SeenSlots(),
  ): AsyncGenerator<SlotView[]> {
    let socket: WaitingSocket | null = null;
    try {
      for (let from = cursor, done = false; !done;) {
        this.#checkClient();
        const reply = await this.endedAfter(from, RPC_WAIT_MS);
        const slots = seen.unseen(reply.slots);
        if (slots.length > 0) yield slots;
        from = reply.cursor;
        done = reply.done;
        if (done || reply.slots.length > 0) continue;
        socket = this.#wait(socket, from);
        await socket.next();
      }
    } finally {
      socket?.close();
    }
  }

  /** A page of the slots that have ended after a cursor; waits up to `waitMs` for the first. */
  async endedAfter(cursor: EndedReply["cursor"] | null, waitMs = 0): Promise<EndedReply> {
    const reply = await this.#run.callWithRetry<EndedReply | null>((run) => run.endedSlots(this.#seq, cursor, waitMs));
    if (reply === null) throw new Error(`group ${this.#seq} of its run has gone`);
    return reply;
  }

  async #view(waitMs: number): Promise<GroupView> {
    const group = await this.#run.callWithRetry<GroupView | null>((run) => run.waitGroup(this.#seq, waitMs));
    if (group === null) throw new Error(`group ${this.#seq} of its run has gone`);
    return group;
  }

  /** Waits for slots that the cursor does not count, or for the group's end; at the socket that is open already, if one is. */
  #wait(socket: WaitingSocket | null, after: EndedReply["cursor"] | null): WaitingSocket {
    const owner = { kind: "group", readerId: this.#readerId, seq: this.#seq, after, isArmed: true } as const;
    if (socket === null) return new WaitingSocket(owner, this.#run, this.#signal);
    socket.update(owner);
    return socket;
  }

  #checkClient(): void {
    if (this.#signal.aborted) {
      throw new Refusal({ reason: "cancelled", message: "the client left before its group ended" });
    }
  }
}
