import { describe, expect, it, vi } from "vitest";
import { workerOf } from "../../../src/run/leases/shard.ts";
import { startWorkflow, type Workflows } from "../../../src/executors/workflow-group.ts";
import type { RunStub } from "../../../src/objects/clients/caller.ts";

const SEQ = 7;
const refused = (): Promise<never> => Promise.reject(new Error("the test refuses"));

/** A run that records what it is told of its groups' executors. */
function runThat(settleAndClaim: (...args: unknown[]) => unknown) {
  const stub: unknown = { settleAndClaim };
  const isStub = (value: unknown): value is RunStub => value === stub;
  return {
    runId: "run_1",
    callWithRetry: <T>(call: (run: RunStub) => PromiseLike<T>): Promise<T> =>
      isStub(stub) ? Promise.resolve(call(stub)) : refused(),
  };
}

async function start(workflows: Workflows): Promise<unknown[][]> {
  const told: unknown[][] = [];
  const run = runThat((...args) => told.push(args));
  vi.spyOn(console, "error").mockReturnValue();
  await startWorkflow(workflows, run, SEQ);
  vi.restoreAllMocks();
  return told;
}

describe("startWorkflow", () => {
  it("creates one instance for the group, named by run and group, and leaves the run alone", async () => {
    const created: unknown[] = [];
    const create = (options: unknown): Promise<void> => Promise.resolve(void created.push(options));
    expect(await start({ create, get: refused })).toEqual([]);
    expect(created).toEqual([{ id: "run_1-7", params: { runId: "run_1", seq: SEQ } }]);
  });

  it("finds the instance of an earlier request, which continues", async () => {
    expect(await start({ create: refused, get: (id) => (id === "run_1-7" ? Promise.resolve({}) : refused()) })).toEqual(
      [],
    );
  });

  it("hands the group to lanes if no instance can be created", async () => {
    const leaves = { covers: null, asksForLanes: false, leaves: true, holds: null, gaveUp: [] };
    expect(await start({ create: refused, get: refused })).toEqual([[workerOf(SEQ), [], 0, false, leaves]]);
  });

  it("does not fail if the run cannot be reached either: its alarm misses the executor", async () => {
    const run = { ...runThat(() => null), callWithRetry: refused };
    vi.spyOn(console, "error").mockReturnValue();
    await expect(startWorkflow({ create: refused, get: refused }, run, SEQ)).resolves.toBeUndefined();
    vi.restoreAllMocks();
  });
});
