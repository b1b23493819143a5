/**
 * The thread of the other run: sends a `/query` every so many milliseconds, whether earlier ones are answered or not, and reports each answer.
 * A thread of its own, because the attack keeps the main one busy.
 */
import { parentPort, workerData } from "node:worker_threads";
import { z } from "zod";

const settings = z.object({ url: z.string(), token: z.string(), everyMs: z.number() }).parse(workerData);

/** A stopped gateway is not to be buried under more than this. */
const WAITING_MAX = 64;

let waiting = 0;
let count = 0;

const nowMs = (): number => performance.timeOrigin + performance.now();

async function query(): Promise<void> {
  if (waiting >= WAITING_MAX) return;
  waiting += 1;
  count += 1;
  const sentMs = nowMs();
  let status = 0;
  try {
    const answer = await fetch(`${settings.url}/query`, {
      method: "POST",
      headers: { authorization: `Bearer ${settings.token}`, "content-type": "application/json" },
      body: JSON.stringify({ prompt: `question ${count}`, max_tokens: 16 }),
    });
    status = answer.status;
    await answer.arrayBuffer();
  } catch {
    // Reported as status 0.
  }
  waiting -= 1;
  parentPort?.postMessage({ sentMs, answeredMs: nowMs(), status }, []);
}

setInterval(() => void query(), settings.everyMs);
