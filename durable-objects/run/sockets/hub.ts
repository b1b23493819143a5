/**
 * The sockets of those who hold something of the run or wait for it. A socket outlives the instance that accepted it: its
 * owner is in its attachment, so that an instance which wakes from hibernation knows who is there.
 */
import * as z from "zod";
import type { SocketOwner, SocketSignal } from "../../../src/objects/methods/sockets.ts";
import { RUN_SOCKETS_MAX } from "../../../src/limits.ts";

const cursor = z.object({ epoch: z.number(), position: z.number() });

const owner = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("call"), callId: z.string(), attemptId: z.string().nullable() }),
  z.object({ kind: z.literal("tool"), callId: z.string(), tool: z.string() }),
  z.object({ kind: z.literal("tool-permit"), callId: z.string(), tool: z.string() }),
  z.object({
    kind: z.literal("executor"),
    executor: z.number().int().nonnegative(),
    holds: z.array(z.string()).optional(),
    seenAtMs: z.number().optional(),
  }),
  z.object({
    kind: z.literal("group"),
    readerId: z.string(),
    seq: z.number(),
    after: cursor.nullable(),
    isArmed: z.boolean(),
  }),
]) satisfies z.ZodType<SocketOwner>;

/** The tag of these sockets: those of followers of the log have another. */
const TAG = "owner";

export class RunSockets {
  readonly #ctx: DurableObjectState;
  /** The newest socket of each owner. */
  readonly #sockets = new Map<string, { socket: WebSocket; owner: SocketOwner }>();
  /** Those that are to be signalled when something of their group ends, by key. */
  readonly #armed = new Set<string>();

  constructor(ctx: DurableObjectState) {
    this.#ctx = ctx;
    for (const socket of ctx.getWebSockets(TAG)) {
      const parsed = owner.safeParse(socket.deserializeAttachment());
      if (parsed.success) this.#add(socket, parsed.data);
    }
  }

  /** Everyone who has a socket. */
  owners(): SocketOwner[] {
    return [...this.#sockets.values()].map((known) => known.owner);
  }

  /** Those who wait for something of a group to end. */
  *armed(): Iterable<SocketOwner> {
    for (const key of this.#armed) {
      const known = this.#sockets.get(key);
      if (known !== undefined) yield known.owner;
    }
  }

  /** Whether a client follows a group at a socket. */
  isFollowed(seq: number): boolean {
    return this.owners().some((each) => each.kind === "group" && each.seq === seq);
  }

  /** Accepts the socket that a request's URL describes. Null if there are too many, or the URL describes none. */
  accept(url: string, nowMs: number): { theirs: WebSocket; owner: SocketOwner } | null {
    const asked = parse(new URL(url).searchParams.get("owner"));
    if (asked === null || this.#sockets.size >= RUN_SOCKETS_MAX) return null;
    const { 0: theirs, 1: ours } = new WebSocketPair();
    this.#ctx.acceptWebSocket(ours, [TAG]);
    this.#keep(ours, asked, nowMs);
    return { theirs, owner: asked };
  }

  /** An owner says what it is by now. Null if the message is of another socket, or no owner. */
  updated(socket: WebSocket, message: string | ArrayBuffer, nowMs: number): SocketOwner | null {
    const next = typeof message === "string" ? parse(message) : null;
    if (next === null || this.#sockets.get(keyOf(next))?.socket !== socket) return null;
    this.#keep(socket, next, nowMs);
    return next;
  }

  /** Sends a signal to an owner's socket. False if the owner has none, or it was lost. */
  signal(to: SocketOwner, signal: SocketSignal): boolean {
    const known = this.#sockets.get(keyOf(to));
    if (known === undefined) return false;
    try {
      if (known.owner.kind === "group" && signal.type === "changed") {
        const disarmed = { ...known.owner, isArmed: false };
        known.socket.serializeAttachment(disarmed);
        this.#add(known.socket, disarmed);
      }
      known.socket.send(JSON.stringify(signal));
      return true;
    } catch {
      // Its owner is gone, or opens another socket.
      return false;
    }
  }

  /** A socket has closed. Returns whose it was; null if its owner has a newer one. */
  closed(socket: WebSocket): SocketOwner | null {
    const parsed = owner.safeParse(socket.deserializeAttachment());
    if (!parsed.success) return null;
    const key = keyOf(parsed.data);
    if (this.#sockets.get(key)?.socket !== socket) return null;
    this.#sockets.delete(key);
    this.#armed.delete(key);
    return parsed.data;
  }

  /** Closes all sockets: the run is about to be deleted. */
  close(): void {
    for (const socket of this.#ctx.getWebSockets(TAG)) socket.close(1001, "the run is deleted");
    this.#sockets.clear();
    this.#armed.clear();
  }

  /** Attaches an owner to its socket: without the attempts that an executor has named, for which there may be no room. */
  #keep(socket: WebSocket, of: SocketOwner, nowMs: number): void {
    const kept: SocketOwner = of.kind === "executor" ? { kind: of.kind, executor: of.executor, seenAtMs: nowMs } : of;
    socket.serializeAttachment(kept);
    this.#add(socket, kept);
  }

  #add(socket: WebSocket, added: SocketOwner): void {
    const key = keyOf(added);
    this.#sockets.set(key, { socket, owner: added });
    if (added.kind === "group" && added.isArmed) this.#armed.add(key);
    else this.#armed.delete(key);
  }
}

function keyOf(who: SocketOwner): string {
  switch (who.kind) {
    case "group":
      return `group/${who.readerId}`;
    case "executor":
      return `executor/${who.executor}`;
    // The socket of an attempt may be opened late, when the call waits for the permit of its next attempt already.
    case "call":
      return `call/${who.callId}/${who.attemptId ?? ""}`;
    default:
      return `${who.kind}/${who.callId}`;
  }
}

function parse(text: string | null): SocketOwner | null {
  if (text === null) return null;
  const parsed = owner.safeParse(JSON.parse(text));
  return parsed.success ? parsed.data : null;
}
