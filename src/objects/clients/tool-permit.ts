/** Waiting for the permit of a tool call: in the run object for a moment, then at a socket, so that the object can sleep. */
import { TOOL_QUEUE_MS_MAX } from "../../limits.ts";
import type { AcquireToolReply } from "../methods/calls.ts";
import type { RunCaller } from "./caller.ts";
import { WaitingSocket } from "./run-socket.ts";

/** The permit, or why there is none: at the latest once the call has waited for `TOOL_QUEUE_MS_MAX`. Null = the client has left. */
export async function acquireTool(
  run: RunCaller,
  call: { callId: string; tool: string },
  signal: AbortSignal,
): Promise<Exclude<AcquireToolReply, { ok: "wait" }> | null> {
  const owner = { kind: "tool-permit", ...call } as const;
  const sinceMs = Date.now();
  let socket: WaitingSocket | null = null;
  try {
    while (!signal.aborted) {
      const waitedMs = Date.now() - sinceMs;
      const reply = await run.callWithRetry<AcquireToolReply>((stub) => stub.acquireTool({ ...call, waitedMs }));
      if (reply.ok !== "wait") return reply;
      // An object that has just queued the call anew does not know its socket.
      if (socket === null) socket = new WaitingSocket(owner, run, signal);
      else socket.update(owner);
      // The object does not watch the time of calls that wait at sockets.
      await Promise.race([socket.next(), scheduler.wait(Math.max(0, sinceMs + TOOL_QUEUE_MS_MAX - Date.now()))]);
    }
    return null;
  } finally {
    socket?.close();
  }
}
