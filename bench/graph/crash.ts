/**
 * Graphs of 500 under SIGKILL. Every answer of the provider has a number of its own, and a prompt has the answers that it was
 * made of: so the prompts show which answers a task was started with, and the end shows which of them were kept.
 */
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { startGateway } from "../../test/support/gateway.ts";
import { startUpstream } from "../../test/support/upstream.ts";
import { Random } from "../adversary/random.ts";
import { exact, plain, type Part } from "../parts/row.ts";
import { graphOf, type GraphAnswer, type Task } from "./answer.ts";

const TASKS = 500;
const WIDTH = 16;
const KILLS_PER_GRAPH = 5;
/** More than a call can be lost: each loss is an attempt. */
const ATTEMPTS_MAX = 10;
/** Answers between two kills, so that each meets work. */
const ANSWERS_BETWEEN = 30;
/** More than the term of a lease that is found in the rows. */
const STALL_MS_MAX = 90_000;

type Played = { answer: GraphAnswer; kills: number; requests: number; prompts: string[]; tasks: Task[] };

export async function measureCrash(kills: number): Promise<Part> {
  const graphs = Math.ceil(kills / KILLS_PER_GRAPH);
  const played = await Promise.all(
    Array.from({ length: graphs }, (_, at) => play(at, Math.min(kills, KILLS_PER_GRAPH))),
  );
  const sum = (of: (each: Played) => number): number => played.reduce((total, each) => total + of(each), 0);
  const faults = played.flatMap(faultsOf);
  const unended = sum(
    ({ answer }) => Object.values(answer.tasks).filter(({ status }) => status !== "completed").length,
  );
  const other = faults.filter((fault) => fault.startsWith("output")).length;
  const early = faults.filter((fault) => fault.startsWith("input")).length;
  return {
    rows: [
      exact("SIGKILLs", `${sum((each) => each.kills)}`, `>= ${kills}`, sum((each) => each.kills) >= kills),
      exact(`tasks of ${graphs} graphs of ${TASKS} that did not complete`, `${unended}`, "0", unended === 0),
      exact("outputs that differ from those without a kill", `${other}`, "0", other === 0),
      exact("dependents started with an input that was not kept", `${early}`, "0", early === 0),
      plain("calls made beyond one per task", `${sum(({ requests }) => requests) - graphs * TASKS}`),
    ],
    faults: faults.slice(0, 20),
  };
}

async function play(seed: number, kills: number): Promise<Played> {
  const random = new Random(seed + 100);
  const tasks = tasksOf(random);
  const prompts: string[] = [];
  let answers = 0;
  const upstream = await startUpstream(({ prompt }) => {
    prompts.push(prompt);
    answers += 1;
    return { delayMs: 20 + (answers % 7) * 10, text: `${prompt.split(" ", 1)[0]}#${answers}` };
  });
  const dataDir = await mkdtemp(join(tmpdir(), "fanout-bench-graph-"));
  const prices = { "*": { input: 1, output: 1 } };
  const up = { kind: "openai", base_url: upstream.baseUrl, models: ["*"], prices, max_attempts: ATTEMPTS_MAX };
  const vars = { ADMIN_KEY: randomUUID(), UPSTREAMS: { up }, DEFAULT_MODEL: "up/m" };
  const start = () => startGateway({ vars, dataDir });
  let gateway = await start();
  try {
    const { token } = await gateway.openRun({ max_parallel: WIDTH, budget: { usd: 1_000 } });
    const opened = await gateway.fetch("/dag", { token, json: { tasks }, headers: { prefer: "respond-async" } });
    const { id } = z.looseObject({ id: z.string() }).parse(await opened.json());
    for (let kill = 0; kill < kills; kill++) {
      const until = answers + ANSWERS_BETWEEN + random.integer(0, 20);
      await waitUntil(() => answers >= until);
      await gateway.kill();
      gateway = await start();
      // Who looks wakes the run; its alarm would, too.
      await gateway.fetch(`/run`, { token }).then((response) => response.arrayBuffer());
    }
    for (;;) {
      const look = await gateway.fetch(`/dag/${id}?wait_ms=20000`, { token });
      const text = await look.text();
      if (look.status !== 200) throw new Error(`/dag/${id} answered ${look.status}: ${text.slice(0, 500)}`);
      const answer = graphOf(text);
      if (answer.status !== "running") return { answer, kills, requests: answers, prompts, tasks };
    }
  } finally {
    await gateway.stop();
    await upstream.stop();
    await rm(dataDir, { recursive: true, force: true });
  }
}

/** A task begins its prompt with its id, and has the outputs of up to three tasks before it. */
function tasksOf(random: Random): Task[] {
  return Array.from({ length: TASKS }, (_, at) => {
    const inputs = new Set<string>();
    for (let edge = 0; edge < Math.min(3, at); edge++) inputs.add(`t${random.integer(Math.max(0, at - 120), at - 1)}`);
    return { id: `t${at}`, prompt: [`t${at}`, ...[...inputs].map((id) => `{{${id}.output}}`)].join(" ") };
  });
}

function faultsOf({ answer, prompts, tasks }: Played): string[] {
  const faults: string[] = [];
  for (const { id } of tasks) {
    // Without a kill, the answer to a task is its id and a number.
    const output = answer.tasks[id]?.output ?? "";
    if (!new RegExp(`^${id}#\\d+$`).test(output)) faults.push(`output of ${id}: ${output}`);
  }
  for (const prompt of prompts) {
    const [id = "", ...inputs] = prompt.split(" ");
    for (const input of inputs) {
      const [source = ""] = input.split("#");
      if (answer.tasks[source]?.output !== input) faults.push(`input of ${id}: ${input} was not kept`);
    }
  }
  return faults;
}

async function waitUntil(holds: () => boolean): Promise<void> {
  const endMs = performance.now() + STALL_MS_MAX;
  while (!holds()) {
    if (performance.now() > endMs) throw new Error("the graph makes no progress");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
