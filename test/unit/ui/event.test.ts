import { describe, expect, it } from "vitest";
import { eventLines } from "../../../src/log/events.ts";
import { RunPicture } from "../../../src/log/picture/picture.ts";
import type { LoggedEvent, RunEvent } from "../../../src/run/log.ts";
import type { Amounts } from "../../../src/run/money/ledger.ts";
import { eventIn } from "../../../ui/model/event.ts";
import { parseLine } from "../../../ui/model/line.ts";

const GROUP = "pg-1763712000000-k3j9x2";
const amounts = (usd: number): Amounts => ({ usd, calls: 1, prompt_tokens: 2, completion_tokens: 3, new_tokens: 5 });
const limits = { usd: 123_456_789, calls: 9, prompt_tokens: null, completion_tokens: null, new_tokens: null };
const attempt = { callId: null, attempt: 1, upstream: "acme", model: "m" };
const usage = { promptTokens: 4, completionTokens: 2, costNanoUsd: 300 };
const METRICS = { wall_ms: 400, sequential_ms: 500, speedup: 1.25, peak_parallel: 2, success_rate: 0.5 };

/** A run's events, of each kind that a picture reads; `null` = of no group. */
const EVENTS: [event: RunEvent, group: string | null][] = [
  [{ event: "run_opened", name: "first", limits, maxParallel: 8 }, null],
  [{ event: "child_opened", childRunId: "run_2", reserved: amounts(70_000_001) }, null],
  [{ event: "child_opened", childRunId: "run_3", reserved: amounts(5) }, null],
  [{ event: "group_started", count: 4, effectiveParallel: 2, tasks: 3, retryOf: "pg-before" }, GROUP],
  [{ event: "attempt_started", index: 0, ...attempt, queuedMs: 40, reserved: amounts(500) }, GROUP],
  [{ event: "attempt_started", index: 1, ...attempt, step: 3, steps: 20, queuedMs: 50, reserved: amounts(700) }, GROUP],
  [
    {
      ...{ event: "attempt_ended", index: 0, ...attempt, outcome: "transient", latencyMs: 10, estimated: true },
      ...{ charged: amounts(300), reason: { reason: "cancelled", message: "x" } },
    },
    GROUP,
  ],
  [{ event: "retry_scheduled", index: 0, callId: null, attempt: 2, delayMs: 900, reason: null }, GROUP],
  [
    {
      ...{ event: "slot_completed", index: 2, callId: null, status: "completed", attempts: 0, reason: null },
      ...{ model: "m", finishReason: "stop", replayed: true, usage, startedAtMs: 1, endedAtMs: 2 },
    },
    GROUP,
  ],
  [{ event: "slot_skipped", index: 3, callId: null, reason: { reason: "cancelled", message: "no" } }, GROUP],
  [{ event: "slots_cancelled", count: 1, status: "failed", reason: { reason: "cancelled", message: "no" } }, GROUP],
  [{ event: "credit_lost", charged: amounts(11) }, null],
  [{ event: "child_closed", childRunId: "run_3", spent: amounts(4) }, null],
  [{ event: "client", json: '{"event_type":"phase","output":"read"}' }, null],
  [
    {
      ...{ event: "group_completed", count: 4, status: "partial", metrics: METRICS, costNanoUsd: 300 },
      ...{ completed: 1, failed: 1, cancelled: 0 },
    },
    GROUP,
  ],
  [{ event: "run_closed", status: "expired" }, null],
];

function seen(run: RunPicture<object>) {
  const { name, limitUsd, startMs, lastMs, ended, counts, skippedCalls, attemptsInFlight, answered } = run;
  const groups = [...run.groups.values()].map(({ open, ...facts }) => ({ ...facts, open: [...open.values()] }));
  const children = [...run.children.values()];
  const money = [run.spentUsd, run.childrenUsd, run.estimatedUsd, run.inFlightUsd, run.openChildrenUsd];
  const calls = { counts, skippedCalls, attemptsInFlight, answered };
  return { name, limitUsd, startMs, lastMs, ended, ...calls, groups, children, money };
}

describe("a line as an event of the picture", () => {
  it("tells what the stored event tells that it was made of", () => {
    const logged = EVENTS.map(([event, group], at): LoggedEvent => ({ atMs: 1_000 * at, group, ...event }));
    const row = { last: logged.length, lines: logged.map((event) => JSON.stringify(event)).join("\n") };
    const lines = eventLines(row, { id: "run_1", parentId: null, depth: 0 });
    // After each event, for one may undo what another one was wrong about.
    const [stored, read] = [new RunPicture(() => ({}), null), new RunPicture(() => ({}), null)];
    for (const [at, event] of logged.entries()) {
      const line = parseLine(lines[at]?.json ?? "");
      if (line === null) throw new Error(`no line of ${event.event}`);
      stored.add(at + 1, event);
      read.add(line.seq, eventIn(line));
      expect(seen(read), event.event).toEqual(seen(stored));
    }
    expect(seen(read)).toMatchObject({ name: "first", limitUsd: 0.123456789, ended: "expired", skippedCalls: 1 });
    expect([...read.groups.values()].flatMap(({ open }) => [...open.values()]).map(({ labels }) => labels)).toEqual([
      [],
      ["step 3/20"],
    ]);
    expect(seen(read).money).toEqual([0.000000315, 0.000000004, 0.000000311, 0.0000007, 0.070000001]);
  });

  it("takes a missing field for 0 or unknown, and an unknown type for no event of the picture", () => {
    const line = { seq: 1, atMs: 5, group: null, fields: {} };
    expect(eventIn({ ...line, type: "attempt_ended" })).toMatchObject({ attempt: 0, charged: { usd: 0 }, index: null });
    expect(eventIn({ ...line, type: "run_opened" })).toMatchObject({ name: null, limits: { usd: null } });
    for (const type of ["event_of_tomorrow", "phase", "throttled"]) {
      expect(eventIn({ ...line, type })).toEqual({ atMs: 5, group: null, event: "unknown" });
    }
  });
});
