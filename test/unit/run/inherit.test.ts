import { describe, expect, it } from "vitest";
import { inherit, type RunAsked } from "../../../durable-objects/run/inherit.ts";
import type { RunSettings } from "../../../durable-objects/run/settings.ts";
import { Ledger, NO_LIMITS } from "../../../src/budget/ledger.ts";
import { toWire } from "../../../src/errors.ts";
import { targetOf } from "../../../src/upstream/target.ts";
import { PLAIN_PRICE } from "../../support/engine.ts";
import { makeUpstream } from "../upstream/make.ts";

const NOW_MS = 1_000_000;

const NOTHING_ASKED: RunAsked = {
  name: null,
  limits: NO_LIMITS,
  maxParallel: null,
  maxDepth: null,
  expiresInMs: null,
  models: null,
  defaultModel: null,
  errorStyle: null,
  windowMs: null,
  unpriced: null,
  retentionMs: null,
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
  maxDepth: 3,
  models: [["acme/*"]],
  defaultModel: "acme/small",
  errorStyle: "rlm",
  windowMs: 70,
  unpriced: "refuse",
  retentionMs: 3_600_000,
  tools: [{ name: "search", url: "https://t.example.com/", description: null, idempotent: true, timeoutMs: 5 }],
  metadataJson: '{"of":"parent"}',
};

function inherited(asked: Partial<RunAsked> = {}, parent: Partial<RunSettings> = {}) {
  const settings = { ...PARENT, ...parent };
  const ledger = new Ledger(settings.limits);
  return inherit({ settings, ledger }, { ...NOTHING_ASKED, ...asked }, { id: "run_child", nowMs: NOW_MS });
}

function childOf(asked: Partial<RunAsked> = {}, parent: Partial<RunSettings> = {}): RunSettings {
  const child = inherited(asked, parent);
  if (!child.ok) throw new Error(JSON.stringify(child.reason));
  return child.settings;
}

describe("a child that asks for nothing", () => {
  it("has all from its parent but its name, its metadata and its share of the budget", () => {
    expect(inherited()).toEqual({
      ok: true,
      hold: { usd: 100, calls: 0, prompt_tokens: 0, completion_tokens: 0 },
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

  it("is held by its parent, whoever holds that one", () => {
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

  it("is refused in the words that agents in the field look for", () => {
    const refused = inherited({}, { depth: 0, maxDepth: 0 });
    if (refused.ok) throw new Error("was not refused");
    const { status, error } = toWire(refused.reason);
    expect([status, error.code, error.max_depth]).toEqual([403, "depth_exceeded", 0]);
    expect(error.message).toBe(
      "MAXIMUM DEPTH REACHED. You must solve this task on your own without calling llm_query.",
    );
  });

  it("narrows only: a larger max_depth than the parent's does nothing", () => {
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
    { parent: 0, asked: null, width: 0 },
  ])("is $width where $asked is asked of a parent of $parent; 0 is no cap", ({ parent, asked, width }) => {
    expect(childOf({ maxParallel: asked }, { maxParallel: parent }).maxParallel).toBe(width);
  });

  it("of a parent without a cap leaves a share for each call that the platform lets it have", () => {
    expect(childOf({}, { maxParallel: 0, limits: { ...NO_LIMITS, usd: 512 * 3 + 1 } }).limits.usd).toBe(3);
  });
});

describe("the models of a child", () => {
  const upstreams = [makeUpstream({ prices: [{ pattern: "*", price: PLAIN_PRICE }] })];
  const allows = (settings: RunSettings, model: string): boolean =>
    targetOf(model, settings, { upstreams, defaultModel: null }).ok;

  it("must match its own list and that of every run above it", () => {
    const child = childOf({ models: ["acme/gpt-*", "other/*"] });
    expect([allows(child, "acme/gpt-x"), allows(child, "acme/o1")]).toEqual([true, false]);
    const grandchild = childOf({ models: ["*"] }, { ...child, depth: 2 });
    expect([allows(grandchild, "acme/gpt-x"), allows(grandchild, "acme/o1")]).toEqual([true, false]);
  });

  it("are the parent's where it names none, and all where nobody does", () => {
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

describe("what a child may choose freely", () => {
  it("is how its answers look, its default model, its name and how long it is kept", () => {
    const free = { name: "n", errorStyle: "null", windowMs: 0, defaultModel: "acme/large", retentionMs: 0 } as const;
    expect(childOf({ ...free, metadataJson: '{"a":1}' })).toMatchObject({ ...free, metadataJson: '{"a":1}' });
  });
});

describe("a child that asks for more than there is", () => {
  it("is refused with the field named", () => {
    const limits = { ...NO_LIMITS, usd: 801 };
    expect(inherited({ limits })).toMatchObject({
      ok: false,
      reason: { reason: "budget_exhausted", param: "budget.usd" },
    });
  });
});
