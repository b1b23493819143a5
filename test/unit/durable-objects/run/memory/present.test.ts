import { describe, expect, it } from "vitest";
import { PresentExecutors } from "../../../../../durable-objects/run/memory/present.ts";
import { workerOf } from "../../../../../src/run/leases/shard.ts";

describe("an executor at a socket", () => {
  it("is sent that slots wait once until it claims", () => {
    const present = new PresentExecutors();
    present.opened(0);
    expect([present.notes(0, "slots"), present.notes(0, "slots")]).toEqual([true, false]);
    present.claimed(0);
    expect(present.notes(0, "slots")).toBe(true);
  });

  it("is sent that it must claim also after it was sent that slots wait, and nothing after that", () => {
    const present = new PresentExecutors();
    present.opened(0);
    present.notes(0, "slots");
    expect([present.notes(0, "changed"), present.notes(0, "changed"), present.notes(0, "slots")]).toEqual([
      true,
      false,
      false,
    ]);
  });

  it("is sent nothing without a socket, even if it claims", () => {
    const present = new PresentExecutors();
    present.claimed(0);
    expect([present.has(0), present.notes(0, "changed")]).toEqual([false, false]);
    present.opened(0);
    present.closed(0);
    expect([present.size, present.notes(0, "changed")]).toEqual([0, false]);
  });

  it("is a lane or a Worker", () => {
    const present = new PresentExecutors();
    present.opened(workerOf(1));
    expect(present.lanes()).toEqual([]);
    present.opened(3);
    expect([present.lanes(), [...present.all()]]).toEqual([[3], [workerOf(1), 3]]);
  });
});
