/** Starts wrangler and waits until the gateway works. */
import { type Readiness, untilReady } from "./readiness.ts";
import { startWrangler, type Wrangler } from "./wrangler.ts";

/** Two wranglers that start at the same moment may pick the same internal port; then one of them has to try again. */
const TRIES_MAX = 3;

type Launch = {
  args: readonly string[];
  env?: Record<string, string>;
  url: string;
  adminKey: string;
  /** Is handed each process as it starts, so that a signal can stop it while it is waited for. */
  onStart(wrangler: Wrangler): void;
};

/** The process and whether it works. A process that does not is not stopped here. */
export async function launch(plan: Launch): Promise<{ wrangler: Wrangler; readiness: Readiness }> {
  for (let tryNumber = 1; ; tryNumber++) {
    const wrangler = startWrangler(plan.args, plan.env);
    plan.onStart(wrangler);
    const readiness = await untilReady(wrangler, plan.url, plan.adminKey);
    const collided = !readiness.ready && readiness.message.includes("Address already in use");
    if (!collided || wrangler.stopping() || tryNumber === TRIES_MAX) return { wrangler, readiness };
    await wrangler.stop();
  }
}
