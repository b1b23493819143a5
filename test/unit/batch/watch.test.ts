/** How long a batch pauses between two looks at the groups that it has open. */
import { describe, expect, it } from "vitest";
import { pauseMs } from "../../../durable-objects/batch/watch.ts";
import { BATCH_LOOK_MS_MAX } from "../../../src/limits.ts";

const still = { left: 100, moved: 0, elapsedMs: 1_000 };

describe("the pause of a batch between two looks", () => {
  it("is half of the time in which the first of its groups would end at its pace", () => {
    // Ten slots in a second leave four seconds for forty, and one for ten.
    expect(pauseMs([{ left: 40, moved: 10, elapsedMs: 1_000 }], 5_000)).toBe(2_000);
    const other = { left: 10, moved: 10, elapsedMs: 1_000 };
    expect(pauseMs([{ left: 40, moved: 10, elapsedMs: 1_000 }, other, still], 5_000)).toBe(500);
  });

  it("doubles while no slot ends, and is never longer than the bound", () => {
    expect([pauseMs([still], 200), pauseMs([still, still], 400)]).toEqual([400, 800]);
    expect(pauseMs([still], BATCH_LOOK_MS_MAX)).toBe(BATCH_LOOK_MS_MAX);
    expect(pauseMs([{ left: 1_000, moved: 1, elapsedMs: 1_000 }], BATCH_LOOK_MS_MAX)).toBe(BATCH_LOOK_MS_MAX);
  });

  it("is a fifth of a second at least, also if all slots have ended or all at once", () => {
    expect(pauseMs([{ left: 0, moved: 10, elapsedMs: 1_000 }], 1_000)).toBe(200);
    expect(pauseMs([{ left: 5, moved: 500, elapsedMs: 0 }], 1_000)).toBe(200);
  });
});
