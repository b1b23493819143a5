/**
 * What the sockets of owners mean for the run: who has one is alive, so its leases need no heartbeat; who loses it has
 * the time of a reconnect to come back.
 */
import { doubtLease, holdLease } from "../../../src/engine/settle.ts";
import type { SocketOwner, SocketSignal } from "../../../src/run-api/sockets.ts";
import { DONE_CODE } from "../../../src/run-client/run-socket.ts";
import type { RunState } from "../state.ts";
import { renewToolPermit } from "../tool-calls.ts";

type OwnedRun = Pick<RunState, "engine" | "status" | "toolPermits">;

/** An owner has opened its socket, or was found with one by a new instance. Returns what to send it, null = nothing. */
export function ownerPresent(run: OwnedRun, owner: SocketOwner, nowMs: number): SocketSignal | null {
  if (owner.kind === "tool") {
    const isPermitted = renewToolPermit(run, owner, nowMs);
    if (isPermitted) run.toolPermits.hold(owner.callId);
    return isPermitted ? null : { type: "abort" };
  }
  const { attemptId } = owner;
  return attemptId === null || holdLease(run.engine, attemptId) ? null : { type: "abort" };
}

/** An owner's socket has closed. One that is done returns by itself what it holds. */
export function ownerLeft(run: OwnedRun, owner: SocketOwner, code: number, nowMs: number): void {
  if (code === DONE_CODE) return;
  if (owner.kind === "tool") run.toolPermits.doubt(owner.callId, nowMs);
  else if (owner.attemptId !== null) doubtLease(run.engine, owner.attemptId, nowMs);
}
