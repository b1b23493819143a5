/** A graph of the largest size against a batch of as many calls, on an upstream that answers at once; and its heap. */
import { Random } from "../adversary/random.ts";
import { sendBatch } from "../load/fan-outs.ts";
import { promptOf } from "../load/prompts.ts";
import { atMost, plain, type Part } from "../row.ts";
import { watchHeap } from "../servers/heap.ts";
import { openRun, startGateway, startUpstream } from "../servers/servers.ts";
import { median } from "../stats.ts";
import { graphOf, type Task } from "./answer.ts";

const WIDTH = 64;
const REPLY_BYTES = 200;
const EDGES_PER_TASK = 3;
/** How far back dependencies reach: so the graph is wider than the run. */
const REACH = 1_000;

export async function measureSize(tasks: number, rounds: number): Promise<Part> {
  await using upstream = await startUpstream({ replyBytes: REPLY_BYTES });
  await using gateway = await startGateway(upstream, { inspector: true });
  using heap = await watchHeap(gateway);
  const batchMs = async (): Promise<number> =>
    await sendBatch(gateway, await openRun(gateway), { n: tasks, width: WIDTH, promptBytes: 200 });
  const bodies = { edges: bodyOf(tasks, false), outputs: bodyOf(tasks, true) };
  const dagMs = async (body: string): Promise<number> => {
    const token = await openRun(gateway);
    const startedMs = performance.now();
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const response = await fetch(`${gateway.url}/dag`, { method: "POST", headers, body });
    const text = await response.text();
    const wallMs = performance.now() - startedMs;
    if (response.status !== 200) throw new Error(`/dag answered ${response.status}: ${text.slice(0, 500)}`);
    const { status } = graphOf(text);
    if (status !== "completed") throw new Error(`the graph ended as ${status}`);
    return wallMs;
  };
  // What runs first is compiled meanwhile.
  await batchMs();
  await dagMs(bodies.outputs);
  const walls = { batch: [] as number[], edges: [] as number[], outputs: [] as number[] };
  for (let round = 0; round < rounds; round++) {
    walls.batch.push(await batchMs());
    walls.edges.push(await dagMs(bodies.edges));
    walls.outputs.push(await dagMs(bodies.outputs));
  }
  const before = await heap.heldBytes();
  const peak = await heap.peakDuring(async () => void (await dagMs(bodies.outputs)), { live: true });
  const slotUs = (ms: readonly number[]): string => `${((median(ms) / tasks) * 1_000).toFixed(0)} µs`;
  const ratioOf = (ms: readonly number[]): number => median(ms) / median(walls.batch);
  const size = `${tasks} tasks, ${tasks * EDGES_PER_TASK} edges`;
  return {
    rows: [
      atMost(`${size}: time per slot ÷ plain batch`, ratioOf(walls.edges), 1.3),
      atMost("the same with an output in each prompt", ratioOf(walls.outputs), 1.3),
      plain("a slot of the batch, of the graph", `${slotUs(walls.batch)}, ${slotUs(walls.edges)}`),
      atMost("live heap at its peak", peak.heapBytes / 1e6, 100, " MB"),
      plain("live heap before", `${(before / 1e6).toFixed(1)} MB`),
    ],
    faults: [],
  };
}

/** Each task depends on three that come before it. `withOutputs`: the output of one of them is in its prompt. */
function bodyOf(count: number, withOutputs: boolean): string {
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
