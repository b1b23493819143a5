import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { OBJECT_RETRY_LIMITS_MS } from "../../../../src/limits.ts";
import { jittered, objectFailure, withRetry } from "../../../../src/objects/clients/retry.ts";

const reset = (): Error => Object.assign(new Error("a turn failed"), { durableObjectReset: true });
const lost = (): Error => Object.assign(new Error("Network connection lost."), { retryable: true });
const overloaded = (): Error => Object.assign(new Error("too many requests"), { retryable: true, overloaded: true });

/** Makes a call that fails with each error in turn and then answers; records the delays. */
async function retried(
  errors: readonly unknown[],
  random = 0.5,
): Promise<{ calls: number; delaysMs: number[]; end: unknown }> {
  const left = [...errors];
  const delaysMs: number[] = [];
  let calls = 0;
  const call = (): Promise<string> => {
    calls += 1;
    return left.length === 0 ? Promise.resolve("answer") : Promise.reject(left.shift());
  };
  const wait = (ms: number): Promise<void> => {
    delaysMs.push(ms);
    return Promise.resolve();
  };
  const end = await withRetry(call, { wait, random: () => random }).catch((error: unknown) => error);
  return { calls, delaysMs, end };
}

describe("an error of a call to an object", () => {
  it.each([
    ["a lost connection", lost(), "reset"],
    ["an instance that was aborted", reset(), "reset"],
    ["an overloaded object", overloaded(), "overloaded"],
    [
      "an overloaded object that does not say retryable",
      Object.assign(new Error("x"), { overloaded: true }),
      "overloaded",
    ],
    [
      "an object of another version, without the method",
      Object.assign(new TypeError('The RPC receiver does not implement the method "newest".'), { remote: true }),
      "outdated",
    ],
    ["an instance whose rows found no room on the disk", new Error("database or disk is full: SQLITE_FULL"), "full"],
    [
      "the same, of an object that another one called",
      Object.assign(new Error("database or disk is full: SQLITE_FULL"), { remote: true }),
      "full",
    ],
    [
      "an object that does not begin, because later code has written its rows",
      Object.assign(new Error("storage has schema 2, this code knows 1"), { durableObjectReset: true }),
      "newer",
    ],
    [
      "the same, of an object that another one called",
      Object.assign(new Error("storage has schema 12, this code knows 1"), { remote: true }),
      "newer",
    ],
    ["a bug", new TypeError("x is undefined"), "bug"],
    ["a bug in the object", Object.assign(new TypeError("x is undefined"), { remote: true }), "bug"],
    ["an error that a method throws", Object.assign(new Error("x"), { remote: true }), "bug"],
    ["a runtime that ended every object", new Error("Application called abort"), "reset"],
    ["retryable in another type than true", Object.assign(new Error("x"), { retryable: "true", remote: true }), "bug"],
    ["no error at all", "retryable", "bug"],
    ["null", null, "bug"],
  ])("is classified: %s", (_, error, failure) => {
    expect(objectFailure(error)).toBe(failure);
  });
});

describe("a call to an object", () => {
  it("is retried while the object restarts", async () => {
    expect(await retried([reset(), lost()])).toEqual({ calls: 3, delaysMs: [25, 100], end: "answer" });
  });

  it("is given up after its retries, with the last error", async () => {
    const errors = [...OBJECT_RETRY_LIMITS_MS.map(reset), lost()];
    const { calls, end } = await retried(errors);
    expect(calls).toBe(OBJECT_RETRY_LIMITS_MS.length + 1);
    expect(end).toMatchObject({ message: "Network connection lost." });
  });

  const thrown = Object.assign(new Error("no such run"), { remote: true });
  const full = Object.assign(new Error("database or disk is full: SQLITE_FULL"), { durableObjectReset: true });
  const newer = new Error("storage has schema 2, this code knows 1");
  it.each([new TypeError("bug"), overloaded(), full, newer, thrown])("is never repeated after %s", async (error) => {
    expect(await retried([error])).toEqual({ calls: 1, delaysMs: [], end: error });
  });

  it("stops its retries at the first error of another kind", async () => {
    expect((await retried([reset(), new TypeError("bug"), reset()])).calls).toBe(2);
  });

  it("waits anything between no time and the limit", () => {
    expect(jittered(4_000, () => 0)).toBe(0);
    expect(jittered(4_000, () => 0.999_999)).toBe(3_999);
  });
});

describe("the callers of run objects", () => {
  it("all go through RunCaller", () => {
    const calling = ["src", "durable-objects"].flatMap((folder) =>
      readdirSync(folder, { recursive: true, encoding: "utf8" })
        .filter((name) => name.endsWith(".ts"))
        .map((name) => join(folder, name))
        .filter((path) => /\brunOf\(/.test(readFileSync(path, "utf8"))),
    );
    expect(calling.sort()).toEqual(["src/objects/address.ts", "src/objects/clients/caller.ts"]);
  });
});
