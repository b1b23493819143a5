/** Waits until a gateway that was just started or deployed is usable, or finds out why it is not. */
import { setTimeout as sleep } from "node:timers/promises";

/** Longest wait for the first response, ms: a new address takes a while until it is known everywhere. */
const START_MS = 60_000;
const POLL_MS = 50;

export type Readiness = { ready: true } | { ready: false; message: string };

/** Waits at most `startMs` (default 60,000) for the gateway's first response, then sends a request as the operator. */
export async function untilReady(url: string, adminKey: string, startMs = START_MS): Promise<Readiness> {
  const giveUpAt = performance.now() + startMs;
  while (!(await answers(url))) {
    if (performance.now() > giveUpAt) return { ready: false, message: `${url} does not respond` };
    await sleep(POLL_MS);
  }
  const message = await refusal(url, adminKey);
  return message === null ? { ready: true } : { ready: false, message: `The gateway is not usable: ${message}` };
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

/** Why a request of the operator fails, such as a wrong configuration; null if it succeeds. */
export async function refusal(url: string, adminKey: string): Promise<string | null> {
  const reply = await fetch(`${url}/runs?limit=1`, { headers: { authorization: `Bearer ${adminKey}` } });
  const text = await reply.text();
  return reply.ok ? null : (messageOf(text) ?? `GET /runs returned ${reply.status} ${text.slice(0, 500)}`);
}

/** The warnings about the gateway's configuration, one sentence each. */
export async function warnings(url: string, adminKey: string): Promise<string[]> {
  const reply = await fetch(`${url}/health`, { headers: { authorization: `Bearer ${adminKey}` } });
  const health: unknown = await reply.json();
  const found = typeof health === "object" && health !== null && "warnings" in health ? health.warnings : [];
  return Array.isArray(found) ? found.filter((each) => typeof each === "string") : [];
}

/** `error.message` of an error body; null if it has none. */
export function messageOf(text: string): string | null {
  const message = /"message"\s*:\s*("(?:[^"\\]|\\.)*")/.exec(text)?.[1];
  if (message === undefined) return null;
  const parsed: unknown = JSON.parse(message);
  return typeof parsed === "string" ? parsed : null;
}
