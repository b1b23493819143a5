/** The run whose events are shown, and its streams. */
import { printable } from "../text/printable.ts";
import { ask, type Answer, type Fetch, type Gateway } from "../gateway/requests.ts";

export type Source = { gateway: Gateway; runId: string };

const TYPES = { events: "text/event-stream", log: "application/x-ndjson" } as const;

/** Requests the run's events as they happen, or its log so far. */
export async function askFor(
  what: keyof typeof TYPES,
  { gateway, runId }: Source,
  { fetch, ...sent }: { fetch: Fetch; headers?: Record<string, string>; signal: AbortSignal },
): Promise<Answer> {
  const path = `/runs/${encodeURIComponent(runId)}/${what}`;
  const answer = await ask(gateway, path, { ...sent, accept: TYPES[what] }, fetch);
  if (answer.ok || answer.problem.status !== 404) return answer;
  const { from, isRunToken } = gateway.credential;
  const whose = isRunToken ? ` that the token from ${from} may read` : "";
  const message = `No such run${whose} at ${gateway.url}${answer.problem.because}.`;
  return { ok: false, problem: { ...answer.problem, message } };
}

/** The message for a response that is not a log. */
export function noLog({ gateway, runId }: Source): string {
  return `${gateway.url} sent a line that does not belong to the log of run ${printable(runId)}.`;
}
