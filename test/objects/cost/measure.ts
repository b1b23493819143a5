/** Counts the operations of calls that wait at a latch of the upstream: see counted.ts. */
import { afterAll, beforeAll, expect } from "vitest";
import {
  CALL_SOCKET_AFTER_MS,
  HEARTBEAT_MS,
  LOG_TAIL_EVENTS_MAX,
  LONG_POLL_MS,
  SOCKET_RENEW_MS,
} from "../../../src/limits.ts";
import { isolatePaces, Paces } from "../../../src/executors/paces.ts";
import { withTimers } from "../../support/objects-clock.ts";
import { evict } from "../../support/objects-direct.ts";
import { alarmDelays, awake, countAnew, type Operations } from "../../support/objects-meter.ts";
import { letThrough, openLatch, untilInFlight, upstreamStats, type TestRun } from "../../support/objects-run.ts";
import { BATCH_CALLS, CALL_MS, EVENT_MS, type Counted } from "./counted.ts";
import { quiet } from "./quiet.ts";

/** Calls of a batch that end one by one while it is as wide as it may be, in each round in which they are counted. */
const ENDED_PER_ROUND = 12;
/** Fewest such rounds: a row of the log may fall into two rounds in a row, but not into three. */
const ROUNDS_MIN = 3;
/** Most such rounds. A quiet machine needs three. */
const ROUNDS_MAX = 5;

/** Where the tools of runs are: the upstream, at its route that only waits. */
export const TOOL_HOST = "tools.example.com";

/** What executors have learned of the models: headers after .7 s of a call of 20 s, or with the whole answer. */
const LEARNED = new Paces();
LEARNED.headersArrived("up/counted", 700);
LEARNED.answered("up/counted", CALL_MS);
LEARNED.requests("plain/counted", true);
const plainReach = isolatePaces.reachOf;

/**
 * Lets executors know this in the tests of the file that calls it: calls of tests are short, and the later their headers are,
 * the busier the machine is. Other files share the isolate: there, executors must see that headers do not come, or they start no lanes.
 */
export function knowPaces(): void {
  beforeAll(() => {
    isolatePaces.reachOf = (model, _, rules) => LEARNED.reachOf(model, 0, rules);
  });
  afterAll(() => {
    isolatePaces.reachOf = plainReach;
  });
}

/** What starts calls that wait at the latch `key` of the upstream, and resolves when the client has its answer. */
export type Start = (run: TestRun, key: string, calls: number) => Promise<unknown>;

/** The operations of a call of a batch that has BATCH_CALLS, `width` of them at a time, each ending by itself. */
export async function countBatch(run: TestRun, key: string, width: number, start: Start): Promise<Counted> {
  const before = await quiet();
  const toEnd = ENDED_PER_ROUND * ROUNDS_MAX;
  // The first that ends makes tables, so it belongs to the opening. So do the sockets of its executors, which they open sooner
  // than in a batch of calls of 20 seconds.
  const { answered, full } = await withTimers([CALL_SOCKET_AFTER_MS], 10, async () => {
    const begun = start(run, key, width + 1 + toEnd);
    await untilInFlight(key, width);
    await endOne(key, width + 1);
    return { answered: begun, full: await quiet() };
  });
  const waiting = waitingNow();
  const { least, ended } = await countEnds(key, width, full);
  await endOthers(key, { width, started: width + 1 + ended, calls: width + 1 + toEnd });
  await letThrough(key, width - 1);
  await untilInFlight(key, 1);
  const last = await quiet();
  await openLatch(key);
  await answered;
  const ends = sum(since(before, full), since(last, await quiet()));
  // Its events wait for those of others: a row of the log holds many.
  const each = { ...least, rows: least.rows + EVENTS_PER_CALL / LOG_TAIL_EVENTS_MAX };
  return counted(sum(each, scaled(ends, 1 / BATCH_CALLS)), scaled(waiting, 1 / width));
}

/**
 * The least that an end of a call costs in a round, of each operation; `ended`: calls that have ended for it. What comes
 * with time and not with a call (an alarm, a look, a turn that a busy machine splits in two) only adds to a round, as does
 * the row of the log that falls into some of them: so the rounds end once one has counted no more than the least
 * before it, after ROUNDS_MIN. What each call costs is in every round.
 */
async function countEnds(key: string, width: number, full: Operations): Promise<{ least: Operations; ended: number }> {
  let least: Operations | null = null;
  let before = full;
  let ended = 0;
  for (let isLeast = false; !isLeast && ended < ENDED_PER_ROUND * ROUNDS_MAX;) {
    for (let at = 0; at < ENDED_PER_ROUND; at++) await endOne(key, width + 1 + ++ended);
    const now = await quiet();
    const round = scaled(since(before, now), 1 / ENDED_PER_ROUND);
    before = now;
    const known: Operations = least ?? round;
    isLeast = ended >= ENDED_PER_ROUND * ROUNDS_MIN && SETTLED_BY.every((name) => round[name] === known[name]);
    least = leastOf(known, round);
  }
  return { least: least ?? NOTHING, ended };
}

/** What must be equal in two rounds: all but times. */
const SETTLED_BY = ["requests", "rows", "commits", "alarms", "messages"] as const satisfies (keyof Operations)[];

/** Ends one call, and waits until the next has started as the `started`th. */
async function endOne(key: string, started: number): Promise<void> {
  await letThrough(key, 1);
  await untilStarted(key, started);
}

async function untilStarted(key: string, started: number): Promise<void> {
  await expect.poll(async () => (await upstreamStats(key)).requests, { interval: 2 }).toBe(started);
}

/** Ends calls until the last of them has started; each that ends lets one start. */
async function endOthers(key: string, of: { width: number; started: number; calls: number }): Promise<void> {
  for (let { started } = of; started < of.calls;) {
    const ending = Math.min(of.width, of.calls - started);
    started += ending;
    await untilInFlight(key, of.width);
    await letThrough(key, ending);
    await untilStarted(key, started);
  }
}

/** The operations of a call that is alone in its run. `host`: where it waits. */
export async function countSingle(run: TestRun, key: string, start: Start, host = "upstream.test"): Promise<Counted> {
  const before = await quiet();
  const answered = withTimers([CALL_SOCKET_AFTER_MS], 10, () => start(run, key, 1));
  await expect.poll(async () => (await upstreamStats(host === TOOL_HOST ? "" : key, host)).inFlight).toBe(1);
  await quiet();
  const waiting = waitingNow();
  // An object that nothing holds sleeps long before a call of 20 seconds ends, and wakes with it.
  if (!awake().objects.some(({ kind }) => kind === "RunObject")) await evict(run.object);
  await letThrough(key, 1, host);
  await answered;
  const done = since(before, await quiet());
  // The call's events wait for those of others: a row of the log holds many.
  return counted({ ...done, rows: done.rows + EVENTS_PER_CALL / LOG_TAIL_EVENTS_MAX }, waiting);
}

/** Start and end of its attempt, and its own end. */
const EVENTS_PER_CALL = 3;

/** The operations of something that no upstream answers. */
export async function countAlone(work: () => Promise<unknown>): Promise<Counted> {
  await quiet();
  countAnew();
  await work();
  return counted(await quiet(), { ...NOTHING, awake: 0 });
}

const NOTHING: Operations = { requests: 0, rows: 0, commits: 0, alarms: 0, messages: 0, timerMs: 0 };

/** What 20 seconds of waiting cost in all; `awake`: objects that are held in memory for all of them. */
type Waiting = Operations & { awake: number };

function waitingNow(): Waiting {
  const { objects, workerTimers } = awake();
  const holders = objects.flatMap((object) => object.holders);
  const longPolls = holders.filter(({ kind, method }) => kind === "request" && LONG_POLLS.has(method)).length;
  const timeouts = [...workerTimers, ...holders].filter(({ kind }) => kind === "timeout");
  const beats = timeouts.map(({ delayMs }) => (BEATS.has(delayMs) ? CALL_MS / delayMs : 0));
  // An alarm that is set anew whenever it fires.
  const alarms = alarmDelays().reduce((total, delayMs) => total + Math.min(1, CALL_MS / Math.max(1_000, delayMs)), 0);
  const requests = (longPolls * CALL_MS) / LONG_POLL_MS + beats.reduce((total, beat) => total + beat, 0);
  // An executor that opens its socket anew says what it holds.
  const messages = beats.reduce((total, beat) => total + beat, 0);
  return { ...NOTHING, requests, messages, alarms, rows: alarms, commits: alarms, awake: objects.length };
}

/** Timeouts whose end is a request: a heartbeat, or a socket that is opened anew. The interval of white space to clients is none. */
const BEATS: ReadonlySet<number> = new Set([HEARTBEAT_MS, SOCKET_RENEW_MS]);
const LONG_POLLS: ReadonlySet<string> = new Set(["waitGroup", "endedSlots", "settleAndClaim", "acquire"]);

function counted(done: Operations, waiting: Waiting): Counted {
  const { rows, requests, commits, alarms, messages, timerMs } = sum(done, waiting);
  const events = requests + alarms + messages;
  const awakeS = (waiting.awake * CALL_MS + events * EVENT_MS + timerMs) / 1_000;
  return { rows, requests, commits, alarms, messages, awakeS };
}

function since(before: Operations, now: Operations): Operations {
  return sum(now, scaled(before, -1));
}

function sum(a: Operations, b: Operations): Operations {
  return {
    requests: a.requests + b.requests,
    rows: a.rows + b.rows,
    commits: a.commits + b.commits,
    alarms: a.alarms + b.alarms,
    messages: a.messages + b.messages,
    timerMs: a.timerMs + b.timerMs,
  };
}

function leastOf(a: Operations, b: Operations): Operations {
  return {
    requests: Math.min(a.requests, b.requests),
    rows: Math.min(a.rows, b.rows),
    commits: Math.min(a.commits, b.commits),
    alarms: Math.min(a.alarms, b.alarms),
    messages: Math.min(a.messages, b.messages),
    timerMs: Math.min(a.timerMs, b.timerMs),
  };
}

function scaled<T extends Operations>(operations: T, factor: number): T {
  const entries = Object.entries(operations).map(([name, value]) => [name, value * factor]);
  return { ...operations, ...Object.fromEntries(entries) };
}
