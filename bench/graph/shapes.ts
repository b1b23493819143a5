/**
 * The shapes of LLMCompiler's ParallelQA questions: two to five branches of a search that feeds a calculation, one that combines
 * them, and an answer over everything. Each call takes a time of its own. The graph is compared with the longest chain of its
 * calls, and with the same calls sent wave by wave, as one batch per level.
 */
import { startGateway } from "../../test/support/gateway.ts";
import { startUpstream } from "../../test/support/upstream.ts";
import { Random } from "../adversary/random.ts";
import { atMost, plain, type Part } from "../parts/row.ts";
import { median } from "../stats.ts";
import { runGraph, type Task } from "./answer.ts";

/** How many questions of each number of branches are played; in the public data set there are 21, 31, 31 and 30. */
const ROUNDS = 3;
export const BRANCHES = [2, 3, 4, 5];
/** Mean of a call, ms: the median of public traces is 8.7 s; shorter calls only make the gateway's share larger. */
const CALL_MS = 2_000;

export type Node = { id: string; dependencies: string[]; ms: number };

export async function measureShapes(): Promise<Part> {
  const upstream = await startUpstream();
  const up = { kind: "openai", base_url: upstream.baseUrl, models: ["*"], prices: { "*": { input: 1, output: 1 } } };
  const gateway = await startGateway({ vars: { UPSTREAMS: { up }, DEFAULT_MODEL: "up/m" } });
  const random = new Random(1);
  const graphRatios: number[] = [];
  const waveRatios: number[] = [];
  try {
    const { token } = await gateway.openRun({ max_parallel: 64, budget: { usd: 1_000 } });
    for (let round = 0; round < ROUNDS; round++) {
      await Promise.all(
        BRANCHES.map(async (branches) => {
          const nodes = shapeOf(branches, random);
          const boundMs = pathMs(nodes);
          const { wallMs } = await runGraph(gateway, token, { tasks: nodes.map(taskOf) });
          graphRatios.push(wallMs / boundMs);
          const startedMs = performance.now();
          for (const level of levelsOf(nodes)) {
            const items = level.map((node) => ({ prompt: node.id, model: modelOf(node) }));
            const response = await gateway.fetch("/batch", { token, json: { items } });
            await response.text();
          }
          waveRatios.push((performance.now() - startedMs) / boundMs);
        }),
      );
    }
  } finally {
    await gateway.stop();
    await upstream.stop();
  }
  return {
    rows: [
      atMost("ParallelQA shapes: wall ÷ critical path, median", median(graphRatios), 1.05),
      plain("the worst of them", Math.max(...graphRatios).toFixed(2)),
      plain("the same calls in waves, median", median(waveRatios).toFixed(2)),
    ],
    faults: [],
  };
}

/** The canonical form of a question with so many branches. */
export function shapeOf(branches: number, random: Random): Node[] {
  const nodes: Node[] = [];
  const add = (id: string, dependencies: string[]): string => {
    // Between a half and one and a half of the mean, and one in five three times as long.
    const ms = Math.round(CALL_MS * (0.5 + random.fraction()) * (random.chance(0.2) ? 3 : 1));
    nodes.push({ id, dependencies, ms });
    return id;
  };
  const maths = Array.from({ length: branches }, (_, at) => add(`math${at}`, [add(`search${at}`, [])]));
  const combined = add("combine", maths);
  add("join", [...nodes.map(({ id }) => id).filter((id) => id !== combined), combined]);
  return nodes;
}

export function taskOf(node: Node): Task {
  const { id, dependencies } = node;
  return { id, prompt: `call ${id}`, dependencies, model: modelOf(node) };
}

function modelOf({ ms }: Node): string {
  return `up/m/delay/${ms}`;
}

/** Duration of the longest chain of calls, if each can start from a time on. */
export function pathMs(nodes: readonly Node[], knownMs: (id: string) => number = () => 0): number {
  const endMs = new Map<string, number>();
  for (const { id, dependencies, ms } of nodes)
    endMs.set(id, ms + Math.max(knownMs(id), ...dependencies.map((each) => endMs.get(each) ?? 0)));
  return Math.max(...endMs.values());
}

function levelsOf(nodes: readonly Node[]): Node[][] {
  const levelOf = new Map<string, number>();
  const levels: Node[][] = [];
  for (const node of nodes) {
    const level = Math.max(-1, ...node.dependencies.map((each) => levelOf.get(each) ?? 0)) + 1;
    levelOf.set(node.id, level);
    (levels[level] ??= []).push(node);
  }
  return levels;
}
