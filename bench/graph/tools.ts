/**
 * LLMCompiler's ParallelQA questions with tools: searches, calculations and what combines them are calls of the run's tools, and a
 * model writes the answer. The plan is written line by line, as a model does, and runs meanwhile. It is compared with its
 * longest chain, and with an agent that thinks before each tool: one call of a model, one of a tool, and so on.
 */
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { startGateway } from "../../test/support/gateway.ts";
import { PlanClient } from "../../test/support/plan-client.ts";
import { startUpstream } from "../../test/support/upstream.ts";
import { Random } from "../adversary/random.ts";
import { atLeast, atMost, plain, type Part } from "../parts/row.ts";
import { median } from "../stats.ts";
import { runGraph } from "./answer.ts";
import { BRANCHES, pathMs, shapeOf, taskOf, type Node } from "./shapes.ts";

const ROUNDS = 2;
/** Between two lines of a plan, ms: a line of 30 tokens from a model that writes 75 of them a second. */
const LINE_MS = 400;
/** A thought of an agent that chooses its next tool, ms: as long as a call of the shapes takes on average. */
const THOUGHT_MS = 2_000;

const called = z.object({ input: z.object({ id: z.string(), ms: z.number() }) });

/** The tools: each call takes the time that its input names. `begun` has the ids of the calls that have arrived. */
async function startTools(): Promise<{ url: string; begun: Set<string>; stop: () => void }> {
  const begun = new Set<string>();
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (part: Buffer) => (body += part.toString()));
    request.on("end", () => {
      const { id, ms } = called.parse(JSON.parse(body)).input;
      begun.add(id);
      setTimeout(() => response.setHeader("content-type", "application/json").end(JSON.stringify({ result: id })), ms);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the tools have no port");
  const stop = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${address.port}`, begun, stop };
}

/** A node as a task: the answer is a model's, all else calls a tool. */
function toolTask(node: Node, name: string) {
  const { id, dependencies, ms } = node;
  if (id.startsWith("join")) return taskOf(node);
  return { id, dependencies, tool: id.startsWith("search") ? "search" : "math", input: { id: name, ms } };
}

/** An agent's time at least, that thinks before each tool and answers at the end. */
function agentMs(nodes: readonly Node[]): number {
  return nodes.reduce((sum, { ms }) => sum + ms, 0) + (nodes.length - 1) * THOUGHT_MS;
}

export async function measureTools(): Promise<Part> {
  const upstream = await startUpstream();
  const tools = await startTools();
  const up = { kind: "openai", base_url: upstream.baseUrl, models: ["*"], prices: { "*": { input: 1, output: 1 } } };
  const vars = { UPSTREAMS: { up }, DEFAULT_MODEL: "up/m", TOOL_HOSTS: "127.0.0.1" };
  const gateway = await startGateway({ vars });
  const random = new Random(3);
  const [whole, streamed, faster, allowed, first]: number[][] = [[], [], [], [], []];
  const widest: number[] = [];
  const faults: string[] = [];
  try {
    const own = ["search", "math"].map((name) => ({ name, url: `${tools.url}/${name}`, idempotent: true }));
    const { token } = await gateway.openRun({ max_parallel: 64, budget: { usd: 1_000 }, tools: own });
    for (let round = 0; round < ROUNDS; round++) {
      for (const branches of BRANCHES) {
        const nodes = shapeOf(branches, random);
        const tasks = nodes.map((node) => toolTask(node, `whole ${round} ${branches} ${node.id}`));
        const { answer, wallMs } = await runGraph(gateway, token, { tasks });
        if (answer.status !== "completed") faults.push(`a graph of ${branches} branches was ${answer.status}`);
        whole?.push(wallMs / pathMs(nodes));
        const plan = nodes.map((node) => toolTask(node, `plan ${round} ${branches} ${node.id}`));
        const written = await playPlan(plan, { url: gateway.url, token, begun: tools.begun });
        if (!written.isCompleted) faults.push(`a plan of ${branches} branches did not complete`);
        const boundMs = pathMs(nodes, (id) => written.writtenMs.get(id) ?? 0);
        streamed?.push(written.wallMs / boundMs);
        faster?.push(agentMs(nodes) / written.wallMs);
        allowed?.push(agentMs(nodes) / boundMs);
        if (branches === Math.max(...BRANCHES)) widest.push(agentMs(nodes) / written.wallMs);
        first?.push(written.startedFirst ? 1 : 0);
      }
    }
  } finally {
    await gateway.stop();
    await upstream.stop();
    tools.stop();
  }
  const mean = (first ?? []).reduce((sum, each) => sum + each, 0) / (first?.length ?? 1);
  return {
    rows: [
      atMost("ParallelQA with tools: wall ÷ critical path, median", median(whole ?? []), 1.05),
      plain("the worst of them", Math.max(...(whole ?? [])).toFixed(2)),
      atLeast("plans whose first tool is called before their second line is sent", mean, 1),
      atMost("written plans: wall ÷ the longest chain with its lines, median", median(streamed ?? []), 1.1),
      atLeast("an agent that thinks before each tool ÷ the written plan, five branches", median(widest), 3),
      plain("the same, all questions, median", median(faster ?? []).toFixed(2)),
      plain("what the longest chain allows there", median(allowed ?? []).toFixed(2)),
    ],
    faults,
  };
}

/** Sends a plan line by line, and waits for its end. */
async function playPlan(
  tasks: readonly ReturnType<typeof toolTask>[],
  { url, token, begun }: { url: string; token: string; begun: ReadonlySet<string> },
) {
  const client = new PlanClient(url, token, { type: "application/x-ndjson" });
  const startedMs = performance.now();
  const writtenMs = new Map<string, number>();
  const [head] = tasks;
  let startedFirst = false;
  for (const [at, task] of tasks.entries()) {
    if (at === 1 && head !== undefined && "input" in head)
      startedFirst = begun.has(called.shape.input.parse(head.input).id);
    writtenMs.set(task.id, performance.now() - startedMs);
    const line = `${JSON.stringify(task)}\n`;
    if (at === tasks.length - 1) client.end(line);
    else {
      client.write(line);
      await sleep(LINE_MS);
    }
  }
  const events = await client.rest();
  const wallMs = performance.now() - startedMs;
  return { wallMs, writtenMs, startedFirst, isCompleted: events.at(-1)?.["status"] === "completed" };
}
