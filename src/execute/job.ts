/** The attempt of a slot, as the executor that has claimed its job makes it. */
import { readCall } from "../engine/call-page.ts";
import type { Job, Settlement } from "../run-api/groups.ts";
import type { Upstream } from "../upstream/config/types.ts";
import { attemptCall, takeSamples, type Attempt } from "./attempt.ts";

/** Makes the attempt of a job. Never rejects. `defaultsJson`: the settings that the job's group shares. */
export async function attemptJob(
  { lease: { attemptId }, callJson }: Job,
  defaultsJson: string,
  attempt: Attempt,
  deps: { upstreams: readonly Upstream[]; headersLimited: boolean },
): Promise<Settlement> {
  const outcome = await attemptCall(attempt, readCall(callJson, defaultsJson), deps);
  return { attemptId, outcome, ...takeSamples() };
}
