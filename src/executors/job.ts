/** The attempt of a slot, as the executor that has claimed its job makes it. */
import { readCall } from "../run/queue/call-page.ts";
import type { Job, Settlement } from "../objects/methods/groups.ts";
import { repairedBody } from "../text/schema/repair.ts";
import { attemptCall, takeSamples, type Attempt, type AttemptPlace } from "./attempt.ts";

/** Makes the attempt of a job. Never rejects. `defaultsJson`: the settings that the job's group shares. */
export async function attemptJob(
  { lease: { attemptId }, callJson, repair }: Job,
  defaultsJson: string,
  attempt: Attempt,
  deps: AttemptPlace,
): Promise<Settlement> {
  const body = readCall(callJson, defaultsJson);
  const outcome = await attemptCall(attempt, repair === undefined ? body : repairedBody(body, repair), deps);
  return { attemptId, outcome, ...takeSamples() };
}
