/** What callers of a run object meet when its instance ends, on a real runtime. */
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { RunObject } from "../../src/index.ts";
import { DISK_FULL_RETRY_MS, OBJECT_OVERLOADED_RETRY_MS } from "../../src/limits.ts";
import { RunCaller } from "../../src/objects/clients/caller.ts";
import { objectFailure } from "../../src/objects/clients/retry.ts";
import type { BudgetDocument } from "../../src/contract/runs.ts";
import { acquireRequest, crash, factsOf } from "../support/objects-direct.ts";
import { openRun } from "../support/objects-run.ts";

const budgetOf = (caller: RunCaller): Promise<BudgetDocument | null> =>
  caller.callWithRetry<BudgetDocument | null>((run) => run.budget());

describe("a run object whose instance was aborted", () => {
  it("fails the pending and the later calls of a stub with durableObjectReset and without retryable", async () => {
    const run = await openRun({ max_parallel: 1 });
    const stub = run.object;
    const facts = factsOf("p", "up/x");
    await stub.acquire(acquireRequest("holds the permit", facts));
    // It waits for the call in flight.
    const pending = stub.endAndWait("closed", null).catch((error: unknown) => error);
    await expect.poll(async () => (await run.object.document(null))?.status).toBe("closed");
    await crash(stub);
    const later: unknown = await Promise.resolve(stub.budget()).catch((error: unknown) => error);
    for (const error of [await pending, later]) {
      expect(error).toMatchObject({ durableObjectReset: true });
      expect(error).not.toHaveProperty("retryable");
      expect(objectFailure(error)).toBe("reset");
    }
  });

  it("is reached by a retry of the caller that saw it end", async () => {
    const run = await openRun({ budget: { usd: 1 } });
    const caller = new RunCaller(env, run.id);
    await budgetOf(caller);
    await crash(run.object);
    expect(await budgetOf(caller)).toMatchObject({ usd: { limit: 1 } });
  });

  it("is called once by a caller that must not retry, whose next call reaches it", async () => {
    const run = await openRun();
    const caller = new RunCaller(env, run.id);
    await caller.callOnce<BudgetDocument | null>((stub) => stub.budget());
    await crash(run.object);
    const once = caller.callOnce<BudgetDocument | null>((stub) => stub.budget());
    await expect(once).rejects.toMatchObject({ durableObjectReset: true });
    expect(await caller.callOnce<BudgetDocument | null>((stub) => stub.budget())).not.toBeNull();
  });
});

describe("a bug in a run object", () => {
  it("is thrown to the caller: the call is not retried", async () => {
    const caller = new RunCaller(env, (await openRun()).id);
    let calls = 0;
    const asked = caller.callWithRetry<unknown>((run) => {
      calls += 1;
      return run.quote([], [{ firstIndex: 0, facts: "no JSON", calls: "" }]);
    });
    await expect(asked).rejects.toThrow("JSON");
    expect(calls).toBe(1);
  });
});

describe("an object whose rows find no room on the disk", () => {
  afterEach(() => vi.restoreAllMocks());

  // As workerd reports it, seen with a full disk: the output gate breaks, which has the properties of an instance that ended.
  it.each(["acquireMany", "open"] as const)("is called once, and its client is told with 507: %s", async (method) => {
    const run = await openRun();
    const failing = (): never => {
      throw Object.assign(new Error("database or disk is full: SQLITE_FULL"), { durableObjectReset: true });
    };
    const called = vi.spyOn(RunObject.prototype, method).mockImplementation(failing);
    const response =
      method === "open"
        ? await run.post("/runs", { name: "child" })
        : await run.post("/query", { prompt: "p", model: "up/x" });
    expect(response.status).toBe(507);
    expect(Number(response.headers.get("retry-after-ms"))).toBeGreaterThanOrEqual(DISK_FULL_RETRY_MS);
    expect(await response.json()).toMatchObject({ error: { code: "storage_full", retryable: true } });
    expect(called).toHaveBeenCalledTimes(1);
  });
});

describe("an object that is overloaded", () => {
  afterEach(() => vi.restoreAllMocks());

  /** Fails every call of a method as the platform does for an object with too many requests. */
  function overload(method: "acquireMany" | "open") {
    const failing = (): never => {
      throw Object.assign(new Error("the test keeps the object overloaded"), { overloaded: true, retryable: true });
    };
    return vi.spyOn(RunObject.prototype, method).mockImplementation(failing);
  }

  async function refusal(response: Response) {
    expect(response.status).toBe(503);
    expect(Number(response.headers.get("retry-after-ms"))).toBeGreaterThanOrEqual(OBJECT_OVERLOADED_RETRY_MS);
    expect(await response.json()).toMatchObject({ error: { code: "overloaded", retryable: true } });
  }

  it("is called once, and its client gets a Retry-After", async () => {
    const run = await openRun();
    const acquire = overload("acquireMany");
    await refusal(await run.post("/query", { prompt: "p", model: "up/x" }));
    expect(acquire).toHaveBeenCalledTimes(1);
  });

  it("is reported as such through the object that called it", async () => {
    const parent = await openRun();
    const open = overload("open");
    await refusal(await parent.post("/runs", { name: "child" }));
    expect(open).toHaveBeenCalledTimes(1);
  });
});
