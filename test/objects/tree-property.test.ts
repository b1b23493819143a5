/**
 * Trees of real runs under random histories: children opened and ended, calls and batches, new limits, pauses, evictions
 * and crashes. `FANOUT_TREE_RUNS` histories of a hundred operations each (default 10). A failure prints
 * its seed.
 */
import { env } from "cloudflare:workers";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DIMENSIONS, zeroAmounts, addAmounts } from "../../src/run/money/ledger.ts";
import { LEASE_TTL_MS } from "../../src/limits.ts";
import { skipTime } from "../support/objects-clock.ts";
import { runObjectOf } from "../support/objects-run.ts";
import { ring } from "../support/objects-tree.ts";
import { expectAsModelled } from "../support/tree-model.ts";
import { treePlans, type TreePlan } from "../support/tree-plan.ts";
import { TreeRun } from "../support/tree-run.ts";

const RUNS = Number(env.TREE_RUNS);
/** Processor time: a history takes seconds of a quiet machine, and half a minute of a busy one. */
const TIMEOUT_MS = 60_000 + RUNS * 60_000;

async function live(plan: TreePlan): Promise<TreeRun> {
  const tree = await TreeRun.start(plan.limits);
  await tree.play(plan);
  await finish(tree);
  return tree;
}

/** Loses every executor, closes the root, and expects all money to be where it belongs. */
async function finish(tree: TreeRun): Promise<void> {
  const { root, nodes } = tree;
  await root.caller.callWithRetry<boolean>((run) => run.end("closed"));
  root.end("closed");
  skipTime(LEASE_TTL_MS);
  for (const node of nodes) {
    node.giveUp();
    await ring(runObjectOf(node.id));
  }
  await expectAsModelled(root);
  const total = zeroAmounts();
  for (const node of nodes) addAmounts(total, node.charged);
  const budget = await root.look();
  for (const dimension of DIMENSIONS) {
    const unit = dimension === "usd" ? 1e9 : 1;
    expect(Math.round(budget[dimension].spent * unit)).toBe(total[dimension]);
  }
  for (const node of nodes) {
    for (const { reserved } of Object.values(await node.look())) expect(reserved).toBe(0);
  }
}

/** Plays plans, and adds up what happened. Nothing is shrunk: a history has too much time in it to be repeated often. */
async function check(lying: boolean, numRuns: number): Promise<TreeRun["counts"]> {
  const sum = { granted: 0, refused: 0, opened: 0, overruns: 0, crashes: 0 };
  await fc.assert(
    fc.asyncProperty(treePlans({ lying }), async (plan) => {
      const { counts } = await live(plan);
      sum.granted += counts.granted;
      sum.refused += counts.refused;
      sum.opened += counts.opened;
      sum.overruns += counts.overruns;
      sum.crashes += counts.crashes;
    }),
    { numRuns, endOnFailure: true },
  );
  return sum;
}

describe("whatever happens to a tree of runs", () => {
  it(
    "limits hold at every node, a parent reserves the sum of its children's budgets, and every charge reaches the root",
    { tags: ["slow"], timeout: TIMEOUT_MS },
    async () => {
      const { granted, refused, opened, overruns, crashes } = await check(false, Math.ceil(RUNS * 0.7));
      expect(Math.min(granted, refused, opened, crashes)).toBeGreaterThan(0);
      expect(overruns).toBe(0);
    },
  );

  it(
    "an upstream that bills too much is charged in full, and an overdrawn run starts nothing more",
    { tags: ["slow"], timeout: TIMEOUT_MS },
    async () => {
      const { overruns } = await check(true, Math.ceil(RUNS * 0.3));
      expect(overruns).toBeGreaterThan(0);
    },
  );
});
