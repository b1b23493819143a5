/** Each single call ends once, whatever its Worker does: in the log, in the totals and in what is charged. */
import { describe, expect, it } from "vitest";
import { sumTotals } from "../../../../src/run/measures/totals.ts";
import type { RunEvent } from "../../../../src/run/log.ts";
import { LateWorkers } from "../../../support/late-workers.ts";

const CALLS = 12;
const HISTORIES = 300;

const played = Array.from({ length: HISTORIES }, (_, at) => {
  const world = new LateWorkers(at + 1);
  world.play(CALLS);
  return { seed: at + 1, world };
});

/** The events of each call, in their order. */
function eventsByCall({ events, workers }: LateWorkers): Map<string, RunEvent[]> {
  const of = (callId: string): RunEvent[] => events.filter((each) => "callId" in each && each.callId === callId);
  return new Map(workers.map(({ callId }) => [callId, of(callId)]));
}

const named = (events: readonly RunEvent[], event: RunEvent["event"]): RunEvent[] =>
  events.filter((each) => each.event === event);

describe("single calls whose Workers are late, away, gone, or without a client", () => {
  it("end at most once each, and nothing of them starts after that", () => {
    for (const { seed, world } of played) {
      for (const [callId, events] of eventsByCall(world)) {
        const ends = named(events, "slot_completed");
        expect(ends.length, `seed ${seed}, ${callId}: ends`).toBeLessThanOrEqual(1);
        const endAt = events.findIndex(({ event }) => event === "slot_completed");
        const later = endAt < 0 ? [] : events.slice(endAt + 1);
        expect(named(later, "attempt_started"), `seed ${seed}, ${callId}: started after its end`).toEqual([]);
      }
    }
  });

  it("end as their Workers are told", () => {
    for (const { seed, world } of played) {
      const byCall = eventsByCall(world);
      for (const { callId, seen, isDead, hasLeft } of world.workers) {
        const events = byCall.get(callId) ?? [];
        const label = `seed ${seed}, ${callId}`;
        if (isDead || hasLeft) continue;
        // Nobody is forgotten.
        expect(seen, label).not.toBeNull();
        const [end] = named(events, "slot_completed");
        const status = end?.event === "slot_completed" ? end.status : null;
        if (seen === false || seen === "failed") expect(status, label).toBe("failed");
        if (seen === "answered") expect(status, label).toBe("completed");
        // An equal call made the attempt that answered, or failed.
        if (seen === "shared") expect(events.at(-1)?.event, label).toBe("slot_completed");
      }
    }
  });

  it("are charged for what was answered, and leave nothing reserved, queued or waiting", () => {
    for (const { seed, world } of played) {
      const { state } = world.engine;
      const { events } = world;
      let charged = 0;
      const open = new Map<string, number>();
      for (const each of events) {
        if (each.event !== "attempt_started" && each.event !== "attempt_ended") continue;
        const id = `${each.callId}.${each.attempt}`;
        open.set(id, (open.get(id) ?? 0) + (each.event === "attempt_started" ? 1 : -1));
        if (each.event === "attempt_ended") charged += each.charged.calls;
      }
      expect(
        [...open.values()].filter((count) => count !== 0),
        `seed ${seed}: attempts`,
      ).toEqual([]);
      const left = [
        state.ledger.reserved.calls,
        state.attempts.size,
        state.calls.size,
        state.queue.delayedCount,
        world.waiting,
      ];
      expect(left, `seed ${seed}: left over`).toEqual([0, 0, 0, 0, 0]);
      expect(state.ledger.spent.calls, `seed ${seed}: charged`).toBe(charged);
      const { singleCalls, completed, failed } = sumTotals([...state.shards.values()].map(({ totals }) => totals));
      const started = [...eventsByCall(world).values()].filter((own) =>
        own.some((each) => each.event === "attempt_ended" && !isPutBack(each)),
      );
      expect(singleCalls, `seed ${seed}: counted`).toBe(started.length);
      expect(completed + failed, `seed ${seed}: ended`).toBeLessThanOrEqual(CALLS);
    }
  });
});

/** Whether an attempt ended because its permit reached nobody: its call is queued as before. */
function isPutBack(event: Extract<RunEvent, { event: "attempt_ended" }>): boolean {
  return event.reason?.reason === "cancelled" && event.reason.message.startsWith("its permit reached nobody");
}
