/** Clients that send many calls, so many at a time, and count how each ended: calls may fail here. */
import { Agent, request } from "node:http";

export type PoolPlan = {
  url: string;
  headers: Record<string, string>;
  bodies: readonly string[];
  concurrency: number;
};

/** `answered`: 200. `refused`: any other status, or none. */
export type PoolResult = { answered: number; refused: number; wallMs: number };

const CALL_MS_MAX = 120_000;

export async function sendAll({ url, headers, bodies, concurrency }: PoolPlan): Promise<PoolResult> {
  const agent = new Agent({ keepAlive: true, maxSockets: concurrency });
  const startedMs = performance.now();
  let next = 0;
  let answered = 0;
  const client = async (): Promise<void> => {
    for (let body = bodies[next++]; body !== undefined; body = bodies[next++]) {
      if ((await statusOf(url, headers, body, agent)) === 200) answered += 1;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, client));
  const wallMs = performance.now() - startedMs;
  agent.destroy();
  return { answered, refused: bodies.length - answered, wallMs };
}

/** The status of one POST, whose answer is read to its end; 0 if there is none. */
function statusOf(url: string, headers: Record<string, string>, body: string, agent: Agent): Promise<number> {
  return new Promise((resolve) => {
    const length = String(Buffer.byteLength(body));
    const all = { ...headers, "content-type": "application/json", "content-length": length };
    const sent = request(url, { method: "POST", agent, headers: all, timeout: CALL_MS_MAX }, (response) => {
      response.resume();
      response.once("end", () => resolve(response.statusCode ?? 0));
      response.once("error", () => resolve(0));
    });
    sent.once("timeout", () => sent.destroy());
    sent.once("error", () => resolve(0));
    sent.end(body);
  });
}
