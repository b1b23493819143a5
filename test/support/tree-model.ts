/**
 * What a tree of runs must show: a model of its own, driven by the answers that the objects gave and by nothing that they
 * store. After every step each object's figures must come to what the model says.
 */
import assert from "node:assert/strict";
import { env } from "cloudflare:workers";
import { RunCaller } from "../../src/objects/clients/caller.ts";
import { reservationFor } from "../../src/run/money/allocate.ts";
import { addAmounts, DIMENSIONS, zeroAmounts, type Amounts, type Limits } from "../../src/run/money/ledger.ts";
import type { BudgetDocument } from "../../src/contract/runs.ts";
import type { Outcome } from "../../src/call.ts";
import type { Dimension } from "../../src/errors.ts";
import { runObjectOf } from "./objects-run.ts";
import { ring } from "./objects-tree.ts";
import { MODELS } from "./tree-plan.ts";

/** Pico-USD per token, by the place of the model in `MODELS`. */
const PRICES = [
  { input: 150_000n, output: 600_000n },
  { input: 3_333_300n, output: 12_345_700n },
  { input: 0n, output: 0n },
] as const;

/** What tokens cost, rounded up to nano-USD: worked out here, and not by the code under test. */
export function costOf(model: number, promptTokens: number, completionTokens: number): number {
  const { input, output } = PRICES[model] ?? PRICES[0];
  return Number((BigInt(promptTokens) * input + BigInt(completionTokens) * output + 999n) / 1_000n);
}

/** What an attempt of so many tokens at most reserves. */
export function amountsOf(model: number, promptTokens: number, completionTokens: number): Amounts {
  const usd = costOf(model, promptTokens, completionTokens);
  const tokens = { prompt_tokens: promptTokens, completion_tokens: completionTokens };
  return { usd, calls: 1, ...tokens, new_tokens: promptTokens + completionTokens };
}

export type Attempt = { model: number; reserved: Amounts };

export class Node {
  readonly id: string;
  readonly parent: Node | null;
  readonly children: Node[] = [];
  readonly inFlight = new Map<string, Attempt>();
  /** Attempts whose settlement a crash may still undo, with what was reported. */
  readonly unwritten = new Map<string, Outcome>();
  /** Calls whose client has left, if a crash may still undo that their permits were returned. */
  readonly left = new Set<string>();
  /** What its own attempts were charged. */
  readonly charged = zeroAmounts();
  limits: Limits;
  status: "open" | "closed" | "cancelled" = "open";
  /** Whether an upstream has billed it, or a run below it that has ended, more than it was allowed to. */
  lied = false;

  constructor(id: string, parent: Node | null, limits: Limits) {
    this.id = id;
    this.parent = parent;
    this.limits = limits;
  }

  addChild(id: string, limits: Limits): void {
    this.children.push(new Node(id, this, limits));
  }

  get depth(): number {
    return this.parent === null ? 0 : this.parent.depth + 1;
  }

  /** Itself and all above it. */
  get path(): Node[] {
    return this.parent === null ? [this] : [this, ...this.parent.path];
  }

  /** Itself and all below it, from the top. */
  get subtree(): Node[] {
    return [this, ...this.children.flatMap((child) => child.subtree)];
  }

  /** Nothing of it can spend any more, so its parent gets to know what it spent. */
  get isFinal(): boolean {
    return this.status !== "open" && this.inFlight.size === 0 && this.children.every((child) => child.isFinal);
  }

  get spent(): Amounts {
    const spent = { ...this.charged };
    for (const child of this.children) if (child.isFinal) addAmounts(spent, child.spent);
    return spent;
  }

  get reserved(): Amounts {
    const reserved = zeroAmounts();
    for (const attempt of this.inFlight.values()) addAmounts(reserved, attempt.reserved);
    for (const child of this.children) if (!child.isFinal) addAmounts(reserved, reservationFor(child.limits));
    return reserved;
  }

  remaining(dimension: Dimension): number {
    const limit = this.limits[dimension];
    return limit === null ? Infinity : limit - this.spent[dimension] - this.reserved[dimension];
  }

  get caller(): RunCaller {
    return new RunCaller(env, this.id);
  }

  async look(): Promise<BudgetDocument> {
    const budget = await this.caller.callWithRetry<BudgetDocument | null>((run) => run.budget());
    if (budget === null) throw new Error(`${this.id} is not there`);
    const over = DIMENSIONS.filter((dimension) => {
      const { limit, spent, reserved } = budget[dimension];
      return limit !== null && nano(dimension, spent) + nano(dimension, reserved) > nano(dimension, limit);
    });
    if (!this.liedBelow) assert.deepEqual(over, [], `${this.id} has more than its limit spent and reserved`);
    return budget;
  }

  /** A lie shows at once where it happened, and above it when the run has ended. */
  get liedBelow(): boolean {
    return this.subtree.some(({ lied }) => lied);
  }

  /** Ends it and all below it in the model; `cancelled` gives up what is in flight. */
  end(how: "closed" | "cancelled"): void {
    for (const node of this.subtree) {
      if (node.status === "open" || how === "cancelled") node.status = how;
      if (node.status === "cancelled") node.giveUp();
    }
  }

  /** Charges everything in flight at its reservation. */
  giveUp(): void {
    for (const { reserved } of this.inFlight.values()) addAmounts(this.charged, reserved);
    this.inFlight.clear();
  }
}

/** Waits, ringing alarms, until every object shows what the model says. */
export async function expectAsModelled(root: Node): Promise<void> {
  const nodes = root.subtree;
  for (let round = 0; ; round++) {
    const wrong: unknown[] = [];
    for (const node of nodes.toReversed()) {
      const difference = await differenceOf(node);
      if (difference === null) continue;
      wrong.push(difference);
      await ring(runObjectOf(node.id));
    }
    if (wrong.length === 0) return;
    // A run that has just ended rings for its relatives too, which may show right already.
    for (const node of nodes) await ring(runObjectOf(node.id));
    if (round >= 60) assert.fail(`the tree does not come to what it must show:\n${JSON.stringify(wrong, null, 1)}`);
    await scheduler.wait(round < 10 ? 1 : 20);
  }
}

async function differenceOf(node: Node): Promise<unknown> {
  const budget = await node.look();
  const { spent, reserved } = node;
  const shown = (field: "spent" | "reserved"): Amounts => {
    const amounts = zeroAmounts();
    for (const dimension of DIMENSIONS) amounts[dimension] = nano(dimension, budget[dimension][field]);
    return amounts;
  };
  const same = DIMENSIONS.every(
    (dimension) =>
      shown("spent")[dimension] === spent[dimension] && shown("reserved")[dimension] === reserved[dimension],
  );
  if (same) return null;
  const { id, status, depth } = node;
  const expected = { spent, reserved };
  return { id, depth, status, shown: { spent: shown("spent"), reserved: shown("reserved") }, expected };
}

function nano(dimension: Dimension, amount: number): number {
  return dimension === "usd" ? Math.round(amount * 1e9) : amount;
}

export function modelName(model: number): string {
  return MODELS[model] ?? MODELS[0];
}
