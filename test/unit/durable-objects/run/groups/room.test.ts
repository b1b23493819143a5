import { describe, expect, it } from "vitest";
import { fullReason } from "../../../../../durable-objects/run/groups/open.ts";
import { DIRECT_CALLS_MAX, GROUPS_OPEN_MAX } from "../../../../../src/limits.ts";

const mostSingles = DIRECT_CALLS_MAX - 1;
const mostGroups = GROUPS_OPEN_MAX - 1;

describe("a run", () => {
  it("has room for single calls until as many are open as may wait, whatever batches are open", () => {
    expect(fullReason({ singles: mostSingles, groups: GROUPS_OPEN_MAX }, { single: true })).toBeNull();
    const full = fullReason({ singles: DIRECT_CALLS_MAX, groups: 0 }, { single: true });
    expect(full).toMatchObject({ reason: "overloaded", message: expect.stringContaining("10000 single calls") });
  });

  it("has room for batches and graphs up to their bound, whatever single calls are open", () => {
    expect(fullReason({ singles: DIRECT_CALLS_MAX, groups: mostGroups }, { single: false })).toBeNull();
    const full = fullReason({ singles: 0, groups: GROUPS_OPEN_MAX }, { single: false });
    expect(full).toMatchObject({ reason: "overloaded", message: expect.stringContaining("256 batches and graphs") });
  });
});
