import { describe, expect, it } from "vitest";
import { inherit } from "../../../../../durable-objects/run/tree/inherit.ts";
import type { RunInput } from "../../../../../src/objects/methods/runs.ts";
import type { RunSettings } from "../../../../../src/objects/methods/runs.ts";
import { zeroAmounts, Ledger, NO_LIMITS } from "../../../../../src/run/money/ledger.ts";
import { toWire } from "../../../../../src/errors.ts";
import { targetOf } from "../../../../../src/providers/target.ts";
import { PLAIN_PRICE } from "../../../../support/engine.ts";
import { makeUpstream } from "../../../providers/make.ts";

const NOW_MS = 1_000_000;

const NOTHING_ASKED: RunInput = {
  name: null,
  limits: NO_LIMITS,
  weight: null,
  maxParallel: null,
  maxDepth: null,
  expiresInMs: null,
  models: null,
  defaultModel: null,
  errorStyle: null,
  windowMs: null,
  unpriced: null,
  retentionMs: null,
  region: null,
  metadataJson: "{}",
};

const PARENT: RunSettings = {
  id: "run_parent",
  name: "parent",
  parentId: "run_root",
  ancestors: ["run_root"],
  holder: "run",
  depth: 1,
  createdAtMs: 0,
  expiresAtMs: NOW_MS + 60_000,
  limits: { ...NO_LIMITS, usd: 800 },
  maxParallel: 8,
  weight: 2,
  maxDepth: 3,
  models: [["acme/*"]],
  defaultModel: "acme/small",
  errorStyle: "rlm",
  windowMs: 70,
  unpriced: "refuse",
  retentionMs: 3_600_000,
  region: "weur",
  tools: [{ name: "search", url: "https://t.example.com/", description: null, idempotent: true, timeoutMs: 5 }],
  metadataJson: '{"of":"parent"}',
};

function inherited(asked: Partial<RunInput> = {}, parent: Partial<RunSettings> = {}) {
  const settings = { ...PARENT, ...parent };
  const ledger = new Ledger(settings.limits);
  return inherit(
    { settings, ledger, siblings: zeroAmounts() },
    { ...NOTHING_ASKED, ...asked },
    { id: "run_child", nowMs: NOW_MS },
  );
}

function childOf(asked: Partial<RunInput> = {}, parent: Partial<RunSettings> = {}): RunSettings {
  const child = inherited(asked, parent);
  if (!child.ok) throw new Error(JSON.stringify(child.reason));
  return child.settings;
}

describe("a child request without any field", () => {
  it("inherits everything but its name, its metadata and its share of the budget", () => {
    expect(inherited()).toEqual({
      ok: true,
      reservation: { usd: 100, calls: 0, prompt_tokens: 0, completion_tokens: 0, new_tokens: 0 },
      equal: ["usd"],
      settings: {
        ...PARENT,
        id: "run_child",
        name: null,
        parentId: "run_parent",
        ancestors: ["run_root", "run_parent"],
        depth: 2,
        createdAtMs: NOW_MS,
        limits: { ...NO_LIMITS, usd: 100 },
        metadataJson: "{}",
      },
    });
  });

  it("has its budget reserved by its parent, whatever reserves the parent's", () => {
    expect(childOf({}, { holder: "directory" }).holder).toBe("run");
    expect(childOf({}, { holder: null }).holder).toBe("run");
  });
});

describe("the depth of a child", () => {
  it("may be the parent's max_depth, and no more", () => {
    expect(childOf({}, { depth: 2, maxDepth: 3 }).depth).toBe(3);
    const refused = inherited({}, { depth: 3, maxDepth: 3 });
    expect(refused).toEqual({ ok: false, reason: { reason: "depth_exceeded", maxDepth: 3 } });
  });

  it("is refused with the message that recursive agents match", () => {
    const refused = inherited({}, { depth: 0, maxDepth: 0 });
    if (refused.ok) throw new Error("was not refused");
    const { status, error } = toWire(refused.reason);
    expect([status, error.code, error.max_depth]).toEqual([403, "depth_exceeded", 0]);
    expect(error.message).toBe(
      "MAXIMUM DEPTH REACHED. You must solve this task on your own without calling llm_query.",
    );
  });

  it("is not raised by a max_depth above the parent's", () => {
    expect(childOf({ maxDepth: 9 }).maxDepth).toBe(3);
    expect(childOf({ maxDepth: 2 }).maxDepth).toBe(2);
    expect(childOf({ maxDepth: 0 }).maxDepth).toBe(0);
  });
});

describe("the end of a child", () => {
  it("is its own, or its parent's if that comes first", () => {
    expect(childOf({ expiresInMs: 59_999 }).expiresAtMs).toBe(NOW_MS + 59_999);
    expect(childOf({ expiresInMs: 60_001 }).expiresAtMs).toBe(NOW_MS + 60_000);
  });
});

describe("the width of a child", () => {
  it.each([
    { parent: 8, asked: 4, width: 4 },
    { parent: 8, asked: 9, width: 8 },
    { parent: 8, asked: 0, width: 8 },
    { parent: 0, asked: 0, width: 0 },
    { parent: 0, asked: 9, width: 9 },
    { parent: 0, asked: 513, width: 512 },
    { parent: 4_096, asked: 0, width: 4_096 },
    { parent: 0, asked: null, width: 0 },
  ])("is $width if $asked is requested of a parent of $parent; 0 is no cap", ({ parent, asked, width }) => {
    expect(childOf({ maxParallel: asked }, { maxParallel: parent }).maxParallel).toBe(width);
  });

  it("of a parent without a cap leaves an eighth", () => {
    expect(childOf({}, { maxParallel: 0, limits: { ...NO_LIMITS, usd: 8 * 3 + 1 } }).limits.usd).toBe(3);
  });
});

describe("the weight of a child", () => {
  it.each([
    [1, 2, 1],
    [5, 2, 2],
    [null, 2, 2],
  ])("requested as %s of a parent's %s is %s", (weight, parent, expected) => {
    const settings = { ...PARENT, weight: parent };
    const ledger = new Ledger(settings.limits);
    const child = inherit(
      { settings, ledger, siblings: zeroAmounts() },
      { ...NOTHING_ASKED, weight },
      { id: "run_child", nowMs: NOW_MS },
    );
    expect(child).toMatchObject({ ok: true, settings: { weight: expected } });
  });
});

describe("the models of a child", () => {
  const upstreams = [makeUpstream({ prices: [{ pattern: "*", price: PLAIN_PRICE }] })];
  const allows = (settings: RunSettings, model: string): boolean =>
    targetOf(model, settings, { upstreams, defaultModel: null }).ok;

  it("must match its own list and that of every ancestor", () => {
    const child = childOf({ models: ["acme/gpt-*", "other/*"] });
    expect([allows(child, "acme/gpt-x"), allows(child, "acme/o1")]).toEqual([true, false]);
    const grandchild = childOf({ models: ["*"] }, { ...child, depth: 2 });
    expect([allows(grandchild, "acme/gpt-x"), allows(grandchild, "acme/o1")]).toEqual([true, false]);
  });

  it("are the parent's if it names none, and all if no ancestor names any", () => {
    expect(childOf().models).toEqual([["acme/*"]]);
    expect(allows(childOf({}, { models: [] }), "acme/o1")).toBe(true);
  });
});

describe("models without a price", () => {
  it("are not free for a child whose parent refuses them", () => {
    expect(inherited({ unpriced: "free" })).toMatchObject({ ok: false, reason: { param: "unpriced" } });
    expect(childOf({ unpriced: "refuse" }, { unpriced: "free" }).unpriced).toBe("refuse");
    expect(childOf({ unpriced: "free" }, { unpriced: "free" }).unpriced).toBe("free");
    expect(childOf({}, { unpriced: "free" }).unpriced).toBe("free");
  });
});

describe("the retention of a child", () => {
  it("is never longer than its parent's, and equal by default", () => {
    expect(childOf({ retentionMs: 3_599_999 }).retentionMs).toBe(3_599_999);
    expect(childOf({ retentionMs: 3_600_001 }).retentionMs).toBe(3_600_000);
    expect(childOf().retentionMs).toBe(3_600_000);
    expect(childOf({ retentionMs: 1 }, { retentionMs: 0 }).retentionMs).toBe(0);
  });
});

describe("the region of a child", () => {
  it("is its parent's by default", () => {
    expect(childOf().region).toBe("weur");
    expect(childOf({ region: "oc" }).region).toBe("oc");
    expect(childOf({}, { region: null }).region).toBeNull();
  });
});

describe("the replay of a child", () => {
  const records = { replay: { from: null } };

  it("is that of its parent's answers if the parent records, whether it asks for replay or not", () => {
    const replay = { from: "run_parent", inherited: true };
    expect(childOf({}, records).replay).toEqual(replay);
    expect(childOf(records, records).replay).toEqual(replay);
    expect(childOf({}, { replay: { from: "run_other" } }).replay).toEqual(replay);
  });

  it("is that of the run that it names, and then not its parent's", () => {
    expect(childOf({ replay: { from: "run_other" } }, records).replay).toEqual({ from: "run_other" });
  });

  it("is its own alone under a parent that does not record, and none if it does not ask", () => {
    expect(childOf(records).replay).toEqual({ from: null });
    expect(childOf().replay).toBeUndefined();
  });
});

describe("what a child may set freely", () => {
  it("is its error style, its default model and its name", () => {
    const free = { name: "n", errorStyle: "null", windowMs: 0, defaultModel: "acme/large" } as const;
    expect(childOf({ ...free, metadataJson: '{"a":1}' })).toMatchObject({ ...free, metadataJson: '{"a":1}' });
  });
});

describe("a child request beyond the parent's budget", () => {
  it("is refused with the name of the field", () => {
    const limits = { ...NO_LIMITS, usd: 801 };
    expect(inherited({ limits })).toMatchObject({
      ok: false,
      reason: { reason: "budget_exhausted", param: "budget.usd" },
    });
  });
});
