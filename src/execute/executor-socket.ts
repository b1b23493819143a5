/** The socket at which an executor waits: the run object sleeps meanwhile, and signals what a claim would bring. */
import { SOCKET_RENEW_MS } from "../limits.ts";
import type { RunCaller } from "../run-client/caller.ts";
import { RunSocket } from "../run-client/run-socket.ts";
import type { ExecutorListener, ExecutorSocket } from "./executor.ts";

/** Opens it, and opens it again when it is lost, until it is closed. */
export function openExecutorSocket(
  run: RunCaller,
  executor: number,
  { slotsWait, mustClaim }: ExecutorListener,
): ExecutorSocket {
  return new RunSocket(
    { kind: "executor", executor },
    {
      run,
      signalled: ({ type }) => (type === "slots" ? slotsWait() : mustClaim()),
      refused: async () => mustClaim(),
      renewMs: SOCKET_RENEW_MS,
    },
  );
}
