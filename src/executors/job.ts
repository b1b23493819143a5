/** The attempt of a slot, as the executor that has claimed its job makes it. */
import type { CallBody } from "../call.ts";
import { parseExact, tryParseExact } from "../text/json/exact.ts";
import { readCall } from "../run/queue/call-page.ts";
import type { Job, Settlement } from "../objects/methods/groups.ts";
import { repairedBody } from "../text/schema/repair.ts";
import { attemptCall, takeSamples, type Attempt, type AttemptPlace } from "./attempt.ts";

/** Where the attempts of slots are made. */
export type JobPlace = AttemptPlace & Required<Pick<AttemptPlace, "callTools">>;

/** Makes the attempt of a job. Never rejects. `defaultsJson`: the settings that the job's group shares. */
export async function attemptJob(
  { lease: { attemptId }, callJson, repair, round, added }: Job,
  defaultsJson: string,
  attempt: Attempt,
  deps: JobPlace,
): Promise<Settlement> {
  if (round !== undefined) return { attemptId, outcome: await deps.callTools.round(attempt, round) };
  const body = withAdded(readCall(callJson, defaultsJson, parseExact), added);
  const outcome = await attemptCall(attempt, repair === undefined ? body : repairedBody(body, repair), deps);
  return { attemptId, outcome, ...takeSamples() };
}

/** The body with messages that follow its own, which are sent as they were written. */
function withAdded(body: CallBody, added: readonly string[] | undefined): CallBody {
  if (added === undefined) return body;
  const { prompt, messages, ...rest } = body;
  const before = messages ?? [{ role: "user", content: prompt ?? "" }];
  return { ...rest, messages: [...before, ...added.map(tryParseExact)] };
}
