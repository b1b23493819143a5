/** The socket at which an executor waits: the run object sleeps meanwhile, and signals what a claim would bring. */
import { SOCKET_RENEW_MS } from "../limits.ts";
import type { SocketSignal } from "../objects/methods/sockets.ts";
import type { RunCaller } from "../objects/clients/caller.ts";
import { ENDED_CODE, RunSocket } from "../objects/clients/run-socket.ts";
import type { ExecutorListener, ExecutorSocket } from "./executor.ts";

/** Opens it, and opens it again when it is lost or of some age, until it is closed. Each names what the executor holds. */
export function openExecutorSocket(
  run: RunCaller,
  executor: number,
  { slotsWait, mustClaim, holds, held }: ExecutorListener,
): ExecutorSocket {
  const owner = { kind: "executor", executor } as const;
  const signalled = (signal: SocketSignal): void => {
    if (signal.type === "held") held(signal.lost);
    else if (signal.type === "slots") slotsWait();
    else mustClaim();
  };
  const socket = new RunSocket(owner, {
    run,
    signalled,
    refused: async () => mustClaim(),
    renewMs: SOCKET_RENEW_MS,
    greeting: () => ({ ...owner, holds: holds() }),
  });
  return { close: () => socket.close(ENDED_CODE) };
}
