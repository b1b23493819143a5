/** The floor of a batch on its way: what the run is asked, and what a run that does not know the question means. */
import { describe, expect, it } from "vitest";
import { Refusal, type Reason } from "../../../../../src/errors.ts";
import { RunningFloor } from "../../../../../src/objects/clients/groups/running-floor.ts";
import type { RunStub } from "../../../../../src/objects/clients/caller.ts";
import type { FloorReply, FloorRequest } from "../../../../../src/objects/methods/groups.ts";
import type { CallPage } from "../../../../../src/run/queue/call-page.ts";

const page = (facts: string): CallPage => ({ firstIndex: 0, facts, calls: "[]" });

/** A floor whose run answers with `reply`, and what that was asked. */
function asked(reply: (request: FloorRequest) => FloorReply): { floor: RunningFloor; requests: FloorRequest[] } {
  const requests: FloorRequest[] = [];
  const addFloor = (request: FloorRequest): Promise<FloorReply> => {
    requests.push(request);
    return Promise.resolve(reply(request));
  };
  const run = {
    callWithRetry: async <T>(call: (run: RunStub) => PromiseLike<T>): Promise<T> => call({ addFloor } as never),
  };
  return { floor: new RunningFloor(run, "key"), requests };
}

describe("the floor of a batch that is on its way", () => {
  it("goes with each request, so that a repeated one counts nothing twice", async () => {
    const { floor, requests } = asked(({ floor: before, facts }) => ({
      ok: true,
      floor: { ...before, calls: before.calls + facts.length },
    }));
    await floor.add([page("a"), page("b")], ["m"]);
    await floor.add([page("c")], ["m", "n"]);
    expect(requests.map(({ floor: { calls }, facts, models }) => [calls, facts, models])).toEqual([
      [0, ["a", "b"], ["m"]],
      [2, ["c"], ["m", "n"]],
    ]);
    expect(requests.map(({ idempotencyKey }) => idempotencyKey)).toEqual(["key", "key"]);
  });

  it("refuses the batch with the run's reason", async () => {
    const reason: Reason = { reason: "infeasible", message: "never" };
    const { floor } = asked(() => ({ ok: false, reason }));
    await expect(floor.add([page("a")], [])).rejects.toEqual(new Refusal(reason));
  });

  it("is left to the opening by an object of an earlier version, and fails with any other error", async () => {
    const { floor } = asked(() => {
      throw new Error('The RPC receiver does not implement the method "addFloor".');
    });
    await expect(floor.add([page("a")], [])).resolves.toBeUndefined();
    const { floor: broken } = asked(() => {
      throw new TypeError("a bug");
    });
    await expect(broken.add([page("a")], [])).rejects.toThrow("a bug");
  });
});
