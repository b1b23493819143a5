/** What handlers find in their context. */
import type { Keys } from "./auth/keys.ts";
import type { Objects } from "../durable-objects/address.ts";
import type { Bindings, Config } from "./env.ts";

/** Who asks. The operator may do everything; a run acts for itself and its descendants. */
export type Principal = { kind: "operator" } | { kind: "run"; runId: string; depth: number };

/** `requestId` is set on every request; the rest once `authenticate` has let it pass. */
export type AppEnv = {
  Bindings: Bindings & Objects;
  Variables: {
    requestId: string;
    config: Config;
    keys: Keys;
    principal: Principal;
    /** What the run object said last of the run's budget, for the answer's header: nano-USD, null = no limit. */
    remainingNanoUsd: number | null;
  };
};
