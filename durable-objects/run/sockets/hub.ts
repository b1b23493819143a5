/**
 * The sockets of those who hold something of the run. A socket outlives the instance that accepted it: its owner is in
 * its attachment, so that an instance which wakes from hibernation knows who is there.
 */
import { z } from "zod";
import type { SocketOwner, SocketSignal } from "../../../src/run-api/sockets.ts";
import { RUN_SOCKETS_MAX } from "../../../src/limits.ts";

const owner = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("call"), callId: z.string(), attemptId: z.string().nullable() }),
  z.object({ kind: z.literal("tool"), callId: z.string(), tool: z.string() }),
]) satisfies z.ZodType<SocketOwner>;

/** The tag of these sockets: those of followers have another. */
const TAG = "owner";

export class RunSockets {
  readonly #ctx: DurableObjectState;
  /** The newest socket of each owner. */
  readonly #sockets = new Map<string, { socket: WebSocket; owner: SocketOwner }>();

  constructor(ctx: DurableObjectState) {
    this.#ctx = ctx;
    for (const socket of ctx.getWebSockets(TAG)) {
      const parsed = owner.safeParse(socket.deserializeAttachment());
      if (parsed.success) this.#sockets.set(keyOf(parsed.data), { socket, owner: parsed.data });
    }
  }

  /** Everyone who has a socket. */
  *owners(): Iterable<SocketOwner> {
    for (const { owner: each } of this.#sockets.values()) yield each;
  }

  /** Accepts the socket that a request's URL describes. Null if there are too many, or the URL describes none. */
  accept(url: string): { theirs: WebSocket; owner: SocketOwner } | null {
    const asked = ownerIn(url);
    if (asked === null || this.#sockets.size >= RUN_SOCKETS_MAX) return null;
    const { 0: theirs, 1: ours } = new WebSocketPair();
    this.#ctx.acceptWebSocket(ours, [TAG]);
    ours.serializeAttachment(asked);
    this.#sockets.set(keyOf(asked), { socket: ours, owner: asked });
    return { theirs, owner: asked };
  }

  /** Sends a signal to an owner's socket; nothing if it has none, or is busy with another attempt by now. */
  signal(to: SocketOwner, signal: SocketSignal): void {
    const known = this.#sockets.get(keyOf(to));
    if (known === undefined || attemptOf(known.owner) !== attemptOf(to)) return;
    try {
      known.socket.send(JSON.stringify(signal));
    } catch {
      // Its owner is gone, or opens another socket.
    }
  }

  /** A socket has closed. Returns whose it was; null if its owner has a newer one. */
  closed(socket: WebSocket): SocketOwner | null {
    const parsed = owner.safeParse(socket.deserializeAttachment());
    if (!parsed.success) return null;
    const key = keyOf(parsed.data);
    if (this.#sockets.get(key)?.socket !== socket) return null;
    this.#sockets.delete(key);
    return parsed.data;
  }

  /** Closes all sockets: the run is about to be deleted. */
  close(): void {
    for (const socket of this.#ctx.getWebSockets(TAG)) socket.close(1001, "the run is deleted");
    this.#sockets.clear();
  }
}

function attemptOf(who: SocketOwner): string | null {
  return who.kind === "call" ? who.attemptId : null;
}

function keyOf({ kind, callId }: Pick<SocketOwner, "kind" | "callId">): string {
  return `${kind}/${callId}`;
}

function ownerIn(url: string): SocketOwner | null {
  const text = new URL(url).searchParams.get("owner");
  if (text === null) return null;
  const parsed = owner.safeParse(JSON.parse(text));
  return parsed.success ? parsed.data : null;
}
