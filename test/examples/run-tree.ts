/** A tree of runs with its money, as the gateway recorded it. */
import { expect } from "vitest";
import { z } from "zod";
import { lineOf, type LogLine } from "../contract/following.ts";
import type { World } from "../contract/world.ts";

const DIMENSIONS = ["usd", "calls", "prompt_tokens", "completion_tokens"] as const;

const line = z.looseObject({ limit: z.number().nullable(), spent: z.number(), reserved: z.number() });
const amounts = z.object({
  usd: z.number(),
  calls: z.number(),
  prompt_tokens: z.number(),
  completion_tokens: z.number(),
});
const document = z.looseObject({
  id: z.string(),
  name: z.string().nullable(),
  status: z.string(),
  depth: z.int(),
  budget: z.object({ usd: line, calls: line, prompt_tokens: line, completion_tokens: line }),
});

/** A run, its log, and the runs that were opened in it. */
export type RunNode = { run: z.infer<typeof document>; log: LogLine[]; children: RunNode[] };

/** Reads a run and everything that was ever opened below it, as the operator. */
export async function readTree(world: World, id: string): Promise<RunNode> {
  const run = document.parse((await world.sendAsOperator(`/runs/${id}`)).json);
  const log = (await world.sendAsOperator(`/runs/${id}/log`)).text.split("\n").slice(0, -1).map(lineOf);
  const children: RunNode[] = [];
  for (const event of log.filter(({ event_type }) => event_type === "child_opened")) {
    children.push(await readTree(world, z.string().parse(event["child_run_id"])));
  }
  return { run, log, children };
}

/** The tree's runs, each before those below it. */
export function runsOf(node: RunNode): RunNode[] {
  return [node, ...node.children.flatMap(runsOf)];
}

/**
 * Checks the books of a tree whose program has ended: every run below the root is closed and told its parent what it
 * spent; a run's `spent` is what its own calls were charged and what its children spent; nothing is set aside any more.
 */
export function expectBalanced(root: RunNode): void {
  for (const node of runsOf(root)) {
    const { run, log, children } = node;
    if (node !== root) expect([run.name, run.status]).toEqual([run.name, "closed"]);
    const told = log.filter(({ event_type }) => event_type === "child_closed");
    expect(told.map((event) => event["child_run_id"]).toSorted()).toEqual(
      children.map(({ run: { id } }) => id).toSorted(),
    );
    const charges = log.filter(({ event_type }) => event_type === "attempt_ended").map((event) => event["charged"]);
    for (const dimension of DIMENSIONS) {
      const { limit, spent, reserved } = run.budget[dimension];
      const own = sum(charges.map((charged) => amounts.parse(charged)[dimension]));
      const below = sum(children.map((child) => child.run.budget[dimension].spent));
      const heard = sum(told.map((event) => amounts.parse(event["spent"])[dimension]));
      const where = `${dimension} of ${run.name}`;
      expect([where, heard]).toEqual([where, below]);
      expect([where, units(spent), reserved]).toEqual([where, units(own + below), 0]);
      if (limit !== null) expect(spent).toBeLessThanOrEqual(limit);
    }
  }
}

/** A sum without the error that floats add to it: USD are whole nano-USD. */
function sum(values: readonly number[]): number {
  return units(values.reduce((total, value) => total + value, 0)) / 1e9;
}

function units(value: number): number {
  return Math.round(value * 1e9);
}

const subtree = z.looseObject({
  budget: z.object({ usd: line, calls: line }),
  subtree: z.object({
    budget: z.record(z.string(), z.object({ spent: z.number(), in_flight: z.number() })),
  }),
});

/** One look at a running tree: what its root has committed, and what the whole tree has spent and in flight. */
export async function look(world: World, id: string) {
  const { budget, subtree: below } = subtree.parse((await world.sendAsOperator(`/runs/${id}?subtree=1`)).json);
  return (["usd", "calls"] as const).map((dimension) => {
    const { limit, spent, reserved } = budget[dimension];
    const { spent: all = 0, in_flight: flying = 0 } = below.budget[dimension] ?? {};
    return { limit: limit ?? Infinity, committed: units(spent + reserved) / 1e9, live: units(all + flying) / 1e9 };
  });
}
