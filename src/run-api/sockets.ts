/**
 * The sockets between a run object and those who hold something of it or wait for it: hibernatable, so that the object
 * sleeps while nothing happens. A caller opens one only for what lasts: short calls are RPC and nothing else.
 */

/** Who holds a socket. Its JSON is in the request that opens the socket, and in the socket's attachment. */
export type SocketOwner =
  /** The Worker of a single call. `attemptId`: the attempt that it makes; null = it makes none. */
  | { kind: "call"; callId: string; attemptId: string | null }
  /** The Worker of a tool call that has its permit. */
  | { kind: "tool"; callId: string; tool: string };

/** What the object sends, as JSON. */
export type SocketSignal =
  /** What the owner holds is not its own any more: it must stop the work. */
  | { type: "abort" }
  /** The attempt is settled: what still runs of it is of no use. */
  | { type: "settled" };
