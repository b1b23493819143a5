/**
 * During a deploy the Workers of the version before call objects of this one. What such Workers sent in a recorded session
 * (test/support/wire) is sent once more, call by call, and every field of the replies that they got must be in those that
 * they would get now.
 */
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import recorded from "../support/fixtures/wire.jsonl?raw";
import { comparableState, missingIn, Present, type RecordedCall } from "../support/wire/recording.ts";

type Header = { commit: string; recordedAtMs: number };

const [first = "{}", ...lines] = recorded.trim().split("\n");
const header: Header = JSON.parse(first);
const calls: RecordedCall[] = lines.map((line) => JSON.parse(line));

const OBJECT_ID = /[0-9a-f]{64}/g;

/** New ids for the recorded runs: an object's id is good for the namespace that made it. */
function presentOf(): Present {
  const present = new Present(header.recordedAtMs, Date.now());
  for (const id of new Set(lines.flatMap((line) => line.match(OBJECT_ID) ?? []))) {
    present.learn(id, env.RUN.newUniqueId().toString());
  }
  return present;
}

function stubOf({ binding, id, name }: RecordedCall["object"], present: Present): object {
  const namespace: unknown = Reflect.get(env, binding);
  if (!isNamespace(namespace)) throw new Error(`there is no binding ${binding} any more`);
  return id === undefined
    ? namespace.getByName(String(present.of(name)))
    : namespace.get(namespace.idFromString(String(present.of(id))));
}

function isNamespace(value: unknown): value is DurableObjectNamespace {
  return typeof value === "object" && value !== null && "idFromString" in value;
}

async function send(call: RecordedCall, present: Present): Promise<unknown> {
  const stub = stubOf(call.object, present);
  const method: unknown = Reflect.get(stub, call.method);
  if (typeof method !== "function") throw new Error(`${call.method} is no method`);
  const args = call.args.map((argument) => present.of(argument));
  const reply: unknown = await Reflect.apply(method, stub, args);
  return reply;
}

describe(`Workers of ${header.commit}`, () => {
  it("get from today's objects every field that they read", async () => {
    const present = presentOf();
    const missing: string[] = [];
    for (const [at, call] of calls.entries()) missing.push(...(await replayed(call, present, at + 2)));
    expect(missing).toEqual([]);
  });
});

/**
 * Methods whose replies depend on how far the run is: a Worker calls them once more, and so does the replay, until the reply is as
 * it was recorded.
 */
const REPEATED = new Set(["waitGroup", "results", "endedSlots", "acquire", "acquireMany"]);
const REPEAT_EVERY_MS = 100;
const REPEATS_MAX = 150;

/** Whether a reply lets a Worker wait. Time passes: what had to wait in the recording may be granted by now. */
function waits(reply: unknown): boolean {
  return JSON.stringify([reply].flat()) === `[{"ok":"wait"}]`;
}

function grants(reply: unknown): boolean {
  return JSON.stringify([reply].flat()).startsWith(`[{"ok":true,"lease":`);
}

/** Sends one call; returns what its reply lacks. */
async function replayed(call: RecordedCall, present: Present, line: number): Promise<string[]> {
  const what = `${line}: ${call.object.binding}.${call.method}`;
  for (let sends = 1; ; sends += 1) {
    try {
      const reply = await send(call, present);
      present.learnFrom(call.reply, reply);
      const recordedReply = comparableState(call.reply, reply);
      const missing = waits(call.reply) && grants(reply) ? [] : missingIn(reply, recordedReply, `${what} reply`);
      if (missing.length === 0 || !REPEATED.has(call.method) || sends === REPEATS_MAX) return missing;
    } catch (error) {
      return [`${what} failed: ${String(error)}`];
    }
    await scheduler.wait(REPEAT_EVERY_MS);
  }
}
