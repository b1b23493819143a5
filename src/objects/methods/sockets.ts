/**
 * The sockets between a run object and those who hold something of it or wait for it: hibernatable, so that the object
 * sleeps while nothing happens. A caller opens one only for what lasts: short calls are RPC and nothing else.
 */
import type { AcquireReply } from "./calls.ts";
import type { EndedReply } from "./groups.ts";

/**
 * Who holds a socket. Its JSON is in the request that opens the socket, in the socket's attachment, and in each message
 * of the owner, which replaces what it was before.
 */
export type SocketOwner =
  /** The Worker of a single call. `attemptId`: the attempt that it makes; null = it waits for its permit. */
  | { kind: "call"; callId: string; attemptId: string | null }
  /** The Worker of a tool call that has its permit. */
  | { kind: "tool"; callId: string; tool: string }
  /** The Worker of a tool call that waits for its permit. */
  | { kind: "tool-permit"; callId: string; tool: string }
  | ExecutorOwner
  | GroupFollower;

/**
 * A lane or the Worker of a group, by its number, that waits for slots, and for what else a claim would bring. `holds`: the
 * attempts that it has and those whose settlement may not have arrived; in the message that it sends once its socket is open,
 * which the run answers with `held`. `seenAtMs`: when it opened the socket or sent that message; kept by the run.
 */
export type ExecutorOwner = {
  kind: "executor";
  executor: number;
  holds?: string[] | undefined;
  seenAtMs?: number | undefined;
};

/**
 * A Worker that waits for slots of a group to end which its cursor `after` does not count, or for the end of the group if
 * `after` is null. `isArmed`: it gets a signal then, one; a Worker that reads is not armed.
 */
export type GroupFollower = {
  kind: "group";
  readerId: string;
  seq: number;
  after: EndedReply["cursor"] | null;
  isArmed: boolean;
};

/** What the object sends, as JSON. */
export type SocketSignal =
  /** The decision on a call that waited for its permit. */
  | { type: "reply"; reply: AcquireReply }
  /** The object does not know what the owner waits for: it must repeat its request. */
  | { type: "again" }
  /** There is something to read, or to claim. */
  | { type: "changed" }
  /** Slots could start: an executor that has room claims them. */
  | { type: "slots" }
  /** The leases of the attempts that an executor has named are renewed; it must stop those that are `lost`. */
  | { type: "held"; lost: string[] }
  /** What the owner holds is not its own any more: it must stop the work. */
  | { type: "abort" }
  /** The attempt is settled: what still runs of it is of no use. */
  | { type: "settled" };
