/** A graph of the largest size against a batch of as many calls, on an upstream that answers at once; and its heap. */
import { Random } from "../adversary/random.ts";
import { sendBatch } from "../load/fan-outs.ts";
import { promptOf } from "../load/prompts.ts";
import { atMost, plain, type Part, type Row } from "../parts/row.ts";
import type { Server } from "../servers/process.ts";
import { watchHeap } from "../servers/heap.ts";
import { openRun, startGateway, startUpstream } from "../servers/servers.ts";
import { median } from "../stats.ts";
import { graphOf, type Task } from "./answer.ts";

const WIDTH = 64;
const REPLY_BYTES = 200;
const EDGES_PER_TASK = 3;
/** How far back dependencies reach: so the graph is wider than the run. */
const REACH = 1_000;

/** What is compared: a batch, a graph of as many calls, and one that inserts an output into each prompt. */
type Kind = "batch" | "edges" | "outputs";

/** Wall time as the client measures it, and processor time of the gateway, which a busy machine changes less. */
type Times = { wallMs: number[]; cpuMs: number[] };

export async function measureSize(tasks: number, rounds: number): Promise<Part> {
  await using upstream = await startUpstream({ replyBytes: REPLY_BYTES });
  await using gateway = await startGateway(upstream, { inspector: true });
  using heap = await watchHeap(gateway);
  const bodies = { edges: bodyOf(tasks, false), outputs: bodyOf(tasks, true) };
  const run = async (kind: Kind): Promise<number> => {
    const token = await openRun(gateway);
    if (kind === "batch") return sendBatch(gateway, token, { n: tasks, width: WIDTH, promptBytes: 200 });
    return sendDag(gateway, token, bodies[kind]);
  };
  // What runs first is compiled meanwhile.
  await run("batch");
  await run("outputs");
  const times: Record<Kind, Times> = {
    batch: { wallMs: [], cpuMs: [] },
    edges: { wallMs: [], cpuMs: [] },
    outputs: { wallMs: [], cpuMs: [] },
  };
  for (let round = 0; round < rounds; round++) {
    for (const kind of ["batch", "edges", "outputs"] as const) {
      const before = gateway.cpuMs();
      times[kind].wallMs.push(await run(kind));
      times[kind].cpuMs.push(gateway.cpuMs() - before);
    }
  }
  const before = await heap.heldBytes();
  const peak = await heap.peakDuring(async () => void (await run("outputs")), { live: true });
  const figures = figuresOf(times, tasks);
  return {
    rows: [
      ...figures,
      atMost("live heap at its peak", peak.heapBytes / 1e6, 100, " MB"),
      plain("live heap before", `${(before / 1e6).toFixed(1)} MB`),
    ],
    faults: [],
  };
}

function figuresOf({ batch, edges, outputs }: Record<Kind, Times>, tasks: number): Row[] {
  const ratio = (of: Times, measure: keyof Times): number => median(of[measure]) / median(batch[measure]);
  const slotUs = (ms: readonly number[]): string => `${((median(ms) / tasks) * 1_000).toFixed(0)}`;
  const all = [batch, edges, outputs];
  const shown = (measure: keyof Times): string => `${all.map((of) => slotUs(of[measure])).join(", ")} µs`;
  const size = `${tasks} tasks, ${tasks * EDGES_PER_TASK} edges`;
  return [
    atMost(`${size}: time per slot ÷ plain batch`, ratio(edges, "wallMs"), 1.3),
    atMost("the same with an output in each prompt", ratio(outputs, "wallMs"), 1.3),
    atMost("processor time per slot ÷ plain batch", ratio(edges, "cpuMs"), 1.3),
    atMost("the same with an output in each prompt", ratio(outputs, "cpuMs"), 1.3),
    plain("a slot of the batch, of each graph", shown("wallMs")),
    plain("the same in processor time", shown("cpuMs")),
  ];
}

/** Runs a graph to its end. Returns ms. */
export async function sendDag(gateway: Server, token: string, body: string): Promise<number> {
  const startedMs = performance.now();
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const response = await fetch(`${gateway.url}/dag`, { method: "POST", headers, body });
  const text = await response.text();
  const wallMs = performance.now() - startedMs;
  if (response.status !== 200) throw new Error(`/dag answered ${response.status}: ${text.slice(0, 500)}`);
  const { status } = graphOf(text);
  if (status !== "completed") throw new Error(`the graph ended as ${status}`);
  return wallMs;
}

/** Each task depends on three that come before it. `withOutputs`: the output of one of them is in its prompt. */
export function bodyOf(count: number, withOutputs: boolean): string {
  const random = new Random(7);
  const tasks: Task[] = [];
  for (let at = 0; at < count; at++) {
    const dependencies = new Set<string>();
    const first = Math.max(0, at - REACH);
    for (let edge = 0; edge < Math.min(EDGES_PER_TASK, at); edge++)
      dependencies.add(`t${random.integer(first, at - 1)}`);
    const [inserted] = dependencies;
    const prompt = promptOf(at, 200) + (withOutputs && inserted !== undefined ? ` {{${inserted}.output}}` : "");
    tasks.push({ id: `t${at}`, prompt, dependencies: [...dependencies], context_limit_chars: 64 });
  }
  return JSON.stringify({ tasks, options: { concurrency: WIDTH } });
}
