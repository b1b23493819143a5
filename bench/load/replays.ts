/** A program that runs again and again in one run with replay, as concurrent single calls: each time all its answers are recorded. */
import { randomUUID } from "node:crypto";
import type { Server } from "../servers/process.ts";
import { openRun } from "../servers/servers.ts";
import { sendBatch } from "./fan-outs.ts";
import { load } from "./load.ts";
import { MODEL, promptOf } from "./prompts.ts";

/** Calls of one life of the program. */
const CALLS = 1_000;

/** Opens a run that has the answers of the program's calls; returns its token. */
export async function openRecordedRun(gateway: Server): Promise<string> {
  const token = await openRun(gateway, undefined, { replay: "run" });
  await sendBatch(gateway, token, { n: CALLS, width: 64 });
  return token;
}

export type Replays = {
  concurrency: number;
  /** Whether each call has an Idempotency-Key. */
  hasKeys: boolean;
  /** No life begins after this time. */
  msMax: number;
};

/** Runs the program until the time is over; returns the calls answered. */
export async function replay(
  gateway: Server,
  token: string,
  { concurrency, hasKeys, msMax }: Replays,
): Promise<number> {
  const endMs = performance.now() + msMax;
  let calls = 0;
  while (performance.now() < endMs) {
    const epoch = randomUUID();
    const keyed = { ownHeaders: (index: number) => ({ "idempotency-key": `${epoch}-${index}` }) };
    const result = await load({
      url: `${gateway.url}/query`,
      headers: { authorization: `Bearer ${token}`, "x-fanout-epoch": epoch },
      ...(hasKeys ? keyed : {}),
      body: (index) => JSON.stringify({ model: `up/${MODEL}`, prompt: promptOf(index) }),
      concurrency,
      requests: CALLS,
      msMax,
    });
    calls += result.requests;
  }
  return calls;
}
