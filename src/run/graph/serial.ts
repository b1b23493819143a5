/**
 * The order of calls that must not run at the same time, because they name the same file or output: each waits for the one
 * before it that does. Everything else of them runs at once.
 */
import type { Tier } from "../answers/tiers.ts";
import { GRAPH_EDGES_MAX, GRAPH_TASKS_MAX } from "../../limits.ts";
import type { WorkItem } from "./independence.ts";
import type { CompiledGraph, CompiledTask } from "./types.ts";

export type SerialItem = Pick<WorkItem, "name" | "files" | "writes" | "outputLocation"> & { tier?: Tier };

/** `graph` null = no two calls conflict. */
export type Serialized = { ok: true; graph: CompiledGraph | null } | { ok: false; message: string };

/**
 * A graph with one task of one slot for each call, in their order. A call waits for the one before it whatever that ends as.
 * Under strict tiers, a call comes after those of earlier tiers, as it does anyway.
 */
export function serialize(items: readonly SerialItem[], hasStrictTiers: boolean): Serialized {
  const order = items.map((_, index) => index);
  if (hasStrictTiers) order.sort((a, b) => (items[a]?.tier ?? LAST_TIER) - (items[b]?.tier ?? LAST_TIER) || a - b);
  const lastOf = new Map<string, number>();
  const dependencies: number[][] = items.map(() => []);
  let edges = 0;
  for (const index of order) {
    const before = new Set<number>();
    for (const key of keysOf(items[index])) {
      const last = lastOf.get(key);
      if (last !== undefined) before.add(last);
      lastOf.set(key, index);
    }
    dependencies[index] = [...before].sort((a, b) => a - b);
    edges += before.size;
  }
  if (edges === 0) return { ok: true, graph: null };
  if (items.length > GRAPH_TASKS_MAX) return excess(`${items.length} items`, GRAPH_TASKS_MAX);
  if (edges > GRAPH_EDGES_MAX) return excess(`${edges} conflicts of one item with the one before it`, GRAPH_EDGES_MAX);
  const tasks = items.map(({ name, tier }, first): CompiledTask => {
    const task: CompiledTask = {
      id: name,
      first,
      slots: 1,
      dependencies: dependencies[first] ?? [],
      runIf: "always",
      rank: 0,
    };
    return tier === undefined ? task : { ...task, tier };
  });
  const rules = { schedule: "fifo", onError: "continue", inject: "template", ordersOnly: true } as const;
  const graph: CompiledGraph = { version: 1, tasks, slots: tasks.length, ...rules };
  return { ok: true, graph: hasStrictTiers ? { ...graph, tiers: "strict" } : graph };
}

const LAST_TIER = 2;

/** What only one call may have at a time: its files, and where its output goes. */
function keysOf(item: SerialItem | undefined): Set<string> {
  if (item === undefined) return new Set();
  const keys = new Set([...item.files, ...item.writes].map((file) => `file ${file}`));
  if (item.outputLocation !== null) keys.add(`output ${item.outputLocation}`);
  return keys;
}

function excess(what: string, max: number): Serialized {
  return { ok: false, message: `the batch has ${what}; serialize takes at most ${max}` };
}
