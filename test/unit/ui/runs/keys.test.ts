import { describe, expect, it } from "vitest";
import { limitedKey } from "../../../../ui/model/runs/keys.ts";

const OPEN = { name: "up", key: null, class: "open", reason: null, width: null, waiting: 0, busy_models: [] };
const BUSY = { model: "large", reason: "overloaded", wait_ms: 0 };
const GO_ON = "few of its calls run at once, and those of other models go on";

describe("a key on the start page", () => {
  it("is not listed while it is open for all of its models", () => {
    expect(limitedKey(OPEN, 0)).toBeNull();
  });

  it("names a model that is overloaded by itself, whether the key is open or not", () => {
    const open = { name: "up", upstream: "up", isStopped: false };
    expect(limitedKey({ ...OPEN, busy_models: [BUSY] }, 0)).toEqual({
      ...open,
      text: `open, but large is overloaded: ${GO_ON}`,
    });
    const shrunk = { class: "shrunk", reason: "width", width: 7.4, waiting: 2 };
    expect(limitedKey({ ...OPEN, ...shrunk, busy_models: [BUSY] }, 0)?.text).toMatch(
      /^shrunk to 7 in flight: .*; 2 calls wait; large is overloaded: /,
    );
    const both = { ...OPEN, busy_models: [BUSY, { ...BUSY, model: "small" }] };
    expect(limitedKey(both, 0)?.text).toMatch(/^open, but large, small are overloaded: few of their calls/);
  });
});
