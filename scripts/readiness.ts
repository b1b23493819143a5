/** Finds out when a gateway that was just started can do its work, or why it never will. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Wrangler } from "./wrangler.ts";

/** Longest start that is waited for, ms: a cold machine builds and starts in under 10 s. */
const START_MS = 60_000;
/** Time from a build error to giving up, ms: wrangler itself would wait for an edit of the source. */
const BUILD_ERROR_MS = 2_000;
const POLL_MS = 50;

export type Readiness = { ready: true } | { ready: false; message: string };

/**
 * Waits for the gateway's first answer, then opens its door once with the operator's key: a wrong configuration stops
 * the first request that needs it.
 */
export async function untilReady(
  wrangler: Pick<Wrangler, "exited" | "output">,
  url: string,
  adminKey: string,
): Promise<Readiness> {
  let ended = false;
  void wrangler.exited.then(() => (ended = true));
  const giveUpAt = performance.now() + START_MS;
  let errorAt: number | null = null;
  while (!(await answers(url))) {
    const now = performance.now();
    if (errorAt === null && wrangler.output().includes("ERROR")) errorAt = now;
    const failed = ended || now > giveUpAt || (errorAt !== null && now > errorAt + BUILD_ERROR_MS);
    if (failed) return { ready: false, message: `The gateway did not start:\n${wrangler.output().trim()}` };
    await sleep(POLL_MS);
  }
  const message = await refusal(url, adminKey);
  return message === null ? { ready: true } : { ready: false, message: `The gateway cannot work: ${message}` };
}

async function answers(url: string): Promise<boolean> {
  try {
    const reply = await fetch(`${url}/health`, { signal: AbortSignal.timeout(10_000) });
    await reply.body?.cancel();
    return true;
  } catch {
    return false;
  }
}

/** Why the operator's first request fails; null if it does not. */
async function refusal(url: string, adminKey: string): Promise<string | null> {
  const reply = await fetch(`${url}/runs?limit=1`, { headers: { authorization: `Bearer ${adminKey}` } });
  const text = await reply.text();
  return reply.ok ? null : (messageOf(text) ?? `GET /runs answered ${reply.status} ${text.slice(0, 500)}`);
}

/** `error.message` of an error body; null if the text is none. */
export function messageOf(text: string): string | null {
  const message = /"message"\s*:\s*("(?:[^"\\]|\\.)*")/.exec(text)?.[1];
  if (message === undefined) return null;
  const parsed: unknown = JSON.parse(message);
  return typeof parsed === "string" ? parsed : null;
}
