/**
 * Plans that run while they are written: the shapes of LLMCompiler's ParallelQA questions, of which a planner writes one line after
 * the other, as a model does. No plan can end sooner than its longest chain of calls, in which each call waits for its line, too.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { startGateway } from "../../test/support/gateway.ts";
import { PlanClient } from "../../test/support/plan-client.ts";
import { startUpstream, type TestUpstream } from "../../test/support/upstream.ts";
import { Random } from "../adversary/random.ts";
import { atLeast, atMost, plain, type Part } from "../parts/row.ts";
import { median } from "../stats.ts";
import { BRANCHES, pathMs, shapeOf, taskOf, type Node } from "./shapes.ts";

const ROUNDS = 2;
/** Between two lines, ms: a line of 30 tokens from a model that writes 75 of them a second. */
const LINE_MS = 400;

type Played = { ratio: number; wholeRatio: number; startedFirst: boolean; completed: boolean };

export async function measurePlans(): Promise<Part> {
  const upstream = await startUpstream();
  const up = { kind: "openai", base_url: upstream.baseUrl, models: ["*"], prices: { "*": { input: 1, output: 1 } } };
  const gateway = await startGateway({ vars: { UPSTREAMS: { up }, DEFAULT_MODEL: "up/m" } });
  const random = new Random(2);
  const played: Played[] = [];
  try {
    const { token } = await gateway.openRun({ max_parallel: 64, budget: { usd: 1_000 } });
    for (let round = 0; round < ROUNDS; round++) {
      const plans = BRANCHES.map((branches) =>
        shapeOf(branches, random).map((node) => named(node, `${round}-${branches}`)),
      );
      played.push(...(await Promise.all(plans.map((nodes) => play(nodes, { upstream, url: gateway.url, token })))));
    }
  } finally {
    await gateway.stop();
    await upstream.stop();
  }
  const faults = played.every(({ completed }) => completed) ? [] : ["a plan did not complete"];
  const first = played.filter(({ startedFirst }) => startedFirst).length;
  return {
    rows: [
      atLeast("plans whose first call is at the provider before their second line is sent", first / played.length, 1),
      atMost("wall ÷ the later of planning and execution, median", median(played.map(({ ratio }) => ratio)), 1.1),
      plain("the worst of them", Math.max(...played.map(({ ratio }) => ratio)).toFixed(2)),
      plain("planning, and then the longest chain, median", median(played.map((each) => each.wholeRatio)).toFixed(2)),
    ],
    faults,
  };
}

async function play(
  nodes: readonly Node[],
  { upstream, url, token }: { upstream: TestUpstream; url: string; token: string },
): Promise<Played> {
  const client = new PlanClient(url, token, { type: "application/x-ndjson" });
  const startedMs = performance.now();
  const writtenMs = new Map<string, number>();
  let startedFirst = false;
  for (const [at, node] of nodes.entries()) {
    if (at === 1) startedFirst = upstream.counters.sends.has(taskOf(nodes[0] ?? node).prompt);
    const line = `${JSON.stringify(taskOf(node))}\n`;
    writtenMs.set(node.id, performance.now() - startedMs);
    if (at === nodes.length - 1) client.end(line);
    else {
      client.write(line);
      await sleep(LINE_MS);
    }
  }
  const planningMs = performance.now() - startedMs;
  const events = await client.rest();
  const wallMs = performance.now() - startedMs;
  const boundMs = Math.max(
    planningMs,
    pathMs(nodes, (id) => writtenMs.get(id) ?? 0),
  );
  const completed = events.at(-1)?.["status"] === "completed";
  return { ratio: wallMs / boundMs, wholeRatio: (planningMs + pathMs(nodes)) / boundMs, startedFirst, completed };
}

/** A call whose prompt no other plan has. */
function named({ id, dependencies, ms }: Node, plan: string): Node {
  const nameOf = (other: string): string => `${other}-${plan}`;
  return { id: nameOf(id), dependencies: dependencies.map(nameOf), ms };
}
