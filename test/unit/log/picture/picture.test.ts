import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { PictureEvent } from "../../../../src/log/picture/event.ts";
import { RunPicture, type Bounds } from "../../../../src/log/picture/picture.ts";

const GROUP = "pg-1763712000000-k3j9x2";
const NANO = 1_000_000_000;
const WIDE: Bounds = { calls: 1_000, groups: 8, children: 8 };

type Facts = PictureEvent extends infer Each
  ? Each extends PictureEvent
    ? Omit<Each, "atMs" | "group">
    : never
  : never;

const picture = (bounds: Bounds | null = WIDE) => new RunPicture(() => ({}), bounds);

/** Adds the events, one each millisecond; returns what each has changed. */
function add(to: RunPicture<object>, events: readonly Facts[], group: string | null = GROUP) {
  return events.map((facts) => {
    const event: PictureEvent = Object.assign({ atMs: to.lastSeq, group }, facts);
    return to.next(event);
  });
}

const slot = (index: number) => ({ index, callId: null });
const single = (callId: string) => ({ index: null, callId });
type Name = ReturnType<typeof slot> | ReturnType<typeof single>;

const at = { upstream: "up", model: "m" };
const started = (call: Name, attempt = 1, usd = NANO): Facts => ({
  ...{ event: "attempt_started", ...call, attempt, ...at, queuedMs: 5, reserved: { usd } },
});
const ended = (call: Name, attempt = 1, outcome = "success", usd = NANO): Facts => ({
  ...{ event: "attempt_ended", ...call, attempt, ...at, outcome, latencyMs: 7, estimated: false, charged: { usd } },
});
const completed = (call: Name, status = "completed"): Facts => ({
  ...{ event: "slot_completed", ...call, status, model: "m", usage: { costNanoUsd: NANO } },
});
const announced = (count: number): Facts => ({ event: "group_started", count });
const closed = (count: number): Facts => ({ event: "group_completed", count, status: "completed" });

describe("a run's picture", () => {
  it("forgets what has ended if it has bounds, and goes on counting it", () => {
    const run = picture();
    const all = [started(slot(0)), ended(slot(0)), completed(slot(0)), started(slot(1)), completed(slot(1), "failed")];
    add(run, [announced(2), ...all]);
    const group = run.groups.get(GROUP);
    expect([group?.open.size, group?.tally]).toEqual([0, { completed: 1, failed: 1, cancelled: 0, skipped: 0 }]);
    // The last attempt goes on beside the end of its call.
    expect([run.attemptsInFlight, run.inFlightUsd]).toEqual([1, 1]);
    const [late] = add(run, [ended(slot(1))]);
    expect([late?.attempt?.outcome, run.attemptsInFlight, run.inFlightUsd]).toEqual(["success", 0, 0]);
    add(run, [closed(2)]);
    expect([run.groups.size, run.counts.completed, run.counts.failed, run.spentUsd]).toEqual([0, 1, 1, 2]);
  });

  it("does not begin a group anew whose call ends after it", () => {
    const run = picture();
    add(run, [announced(1), closed(1), completed(slot(0))]);
    expect([run.groups.size, run.counts.completed]).toEqual([0, 1]);
  });

  it("remembers all without bounds: an event of an ended group changes that one", () => {
    const run = picture(null);
    add(run, [announced(1), closed(1), completed(slot(0))]);
    expect(run.groups.get(GROUP)).toMatchObject({ number: 1, endMs: 1, count: 1, tally: { completed: 1 } });
  });

  it("keeps the newest open calls, groups and child runs above its bounds, and counts no other as open", () => {
    const run = picture({ calls: 2, groups: 1, children: 1 });
    add(run, [announced(9), started(slot(0)), started(slot(1)), started(slot(2))]);
    expect([[...(run.groups.get(GROUP)?.open.keys() ?? [])], run.counts.running]).toEqual([["#1", "#2"], 2]);
    expect([run.attemptsInFlight, run.inFlightUsd]).toEqual([2, 2]);
    add(run, [announced(1)], "pg-2");
    expect([[...run.groups.keys()], run.counts.running, run.inFlightUsd]).toEqual([["pg-2"], 0, 0]);
    const child = (childRunId: string): Facts => ({ event: "child_opened", childRunId, reserved: { usd: NANO } });
    add(run, [child("a"), child("b")], null);
    expect([[...run.children.keys()], run.openChildrenUsd]).toEqual([["b"], 1]);
  });

  it("is right about what it was told after a gap: the end of what it never saw begin", () => {
    const run = picture();
    const [attempt, call] = add(run, [ended(slot(7)), completed(slot(8)), { event: "unknown" }]);
    expect([attempt?.call, attempt?.attempt, run.spentUsd]).toEqual([null, null, 1]);
    expect([call?.place, call?.call?.state, run.counts.completed, run.counts.waiting]).toEqual([
      ...["begun", "completed"],
      ...[1, 0],
    ]);
    // Of a client, or of a later version.
    const others: Facts[] = [{ event: "client" }, { event: "unknown" }];
    const nothing = { call: null, group: null, attempt: null, place: "known" };
    expect(add(run, others)).toEqual([nothing, nothing]);
    expect([run.lastSeq, run.spentUsd, run.counts.completed]).toEqual([5, 1, 1]);
  });

  it("moves a single call into the group that a later event names, and counts it there", () => {
    const run = picture(null);
    add(run, [started(single("a"))], null);
    const [, joined] = add(run, [started(single("b")), ended(single("a"))]);
    const group = run.groups.get(GROUP);
    expect([joined?.place, joined?.call?.group, group?.begun, group?.count]).toEqual(["joined", GROUP, 2, 2]);
    expect([...(group?.open.keys() ?? [])]).toEqual(["b", "a"]);
    // More are announced than have told so: the first may have begun and ended by itself.
    add(run, [announced(3), completed(single("a"))]);
    expect([group?.count, group?.tally.completed, run.counts.waiting]).toEqual([2, 1, 0]);
  });

  it("takes a call to run as long as one of its attempts is in flight", () => {
    const run = picture();
    add(run, [started(slot(0)), started(slot(0), 2), ended(slot(0), 2, "transient")]);
    expect(run.counts).toMatchObject({ running: 1, waiting: 0 });
    const again: Facts = { event: "retry_scheduled", ...slot(0), attempt: 3, delayMs: 100 };
    const [end, retry] = add(run, [ended(slot(0), 1, "transient"), again]);
    expect([run.counts.waiting, end?.call === retry?.call, retry?.call?.retry]).toEqual([
      ...[1, true],
      { attempt: 3, dueMs: 104 },
    ]);
    add(run, [started(slot(0), 3)]);
    expect([retry?.call?.retry, run.counts.running]).toEqual([null, 1]);
  });

  it("takes each event once", () => {
    const run = picture();
    const event: PictureEvent = { atMs: 1, group: null, event: "credit_lost", charged: { usd: NANO } };
    expect(run.add(5, event)).not.toBeNull();
    expect([run.add(5, event), run.add(4, event), run.estimatedUsd]).toEqual([null, null, 1]);
  });
});

/** What a program that starts and ends attempts and calls at random knows of them. */
class Model {
  readonly calls = new Map<number, { open: Set<number>; attempts: number; ended: boolean }>();
  spent = 0;
  readonly ended = { completed: 0, failed: 0, cancelled: 0 };

  /** The event of the next step; null = this one is not possible now. */
  step(index: number, kind: number): Facts | null {
    const call = this.calls.get(index) ?? { open: new Set<number>(), attempts: 0, ended: false };
    const oldest = call.open.values().next().value;
    if (kind === 0 && !call.ended) {
      call.attempts += 1;
      call.open.add(call.attempts);
      this.calls.set(index, call);
      return started(slot(index), call.attempts);
    }
    if (kind === 1 && oldest !== undefined) {
      call.open.delete(oldest);
      this.spent += 1;
      return ended(slot(index), oldest);
    }
    if (kind !== 2 || call.ended) return null;
    call.ended = true;
    this.calls.set(index, call);
    const status = (["completed", "failed", "cancelled"] as const)[index % 3] ?? "failed";
    this.ended[status] += 1;
    return completed(slot(index), status);
  }

  get counts() {
    const open = [...this.calls.values()].filter(({ ended }) => !ended);
    const running = open.filter((call) => call.open.size > 0).length;
    return { running, waiting: open.length - running, ...this.ended };
  }
}

describe("a picture of any history", () => {
  it("counts calls, attempts and money as they are, with bounds and without", () => {
    const steps = fc.array(fc.tuple(fc.nat(12), fc.nat(2)), { maxLength: 200 });
    fc.assert(
      fc.property(steps, (history) => {
        const model = new Model();
        const pictures = [picture(), picture(null)];
        for (const [index, kind] of history) {
          const event = model.step(index, kind);
          if (event !== null) for (const each of pictures) add(each, [event]);
        }
        const inFlight = [...model.calls.values()].reduce((sum, { open }) => sum + open.size, 0);
        for (const each of pictures) {
          expect(each.counts).toEqual(model.counts);
          expect([each.attemptsInFlight, each.inFlightUsd, each.spentUsd]).toEqual([inFlight, inFlight, model.spent]);
        }
      }),
    );
  });
});
