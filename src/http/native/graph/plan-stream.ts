/**
 * `POST /dag` with a plan: it is executed while it arrives. The graph is opened with the first line that is a task, and the others
 * are added as they are complete. What ends the plan, in whatever way, closes the graph for further tasks; those that have come
 * go on to their end.
 */
import type { Context } from "hono";
import type { AppEnv } from "../../context.ts";
import type { Notify } from "../../../call.ts";
import { invalid } from "../../../contract/errors.ts";
import { parseDag } from "../../../contract/graph/dag.ts";
import { Refusal } from "../../../errors.ts";
import { appendPlan, EMPTY_PLAN } from "../../../run/graph/plan/append.ts";
import type { PlanLines } from "../../../run/graph/plan/lines.ts";
import type { CompiledGraph, PlanFault } from "../../../run/graph/types.ts";
import { PLAN_BLOCK_TASKS, PLAN_EAGER_CHANGES, PLAN_HEARTBEAT_MS } from "../../../limits.ts";
import type { IdempotencyKey } from "../../../objects/methods/types.ts";
import type { AppendPlanReply } from "../../../objects/methods/groups.ts";
import { RunCaller } from "../../../objects/clients/caller.ts";
import { startLanes } from "../../../objects/clients/lanes.ts";
import { taskWithContext } from "../../contexts/find.ts";
import { taskWithTools } from "../tool-use.ts";
import { bodyRoom } from "../../body-bound.ts";
import { answerGraph } from "./answer.ts";
import { openGraph } from "./open.ts";
import { PlanFaults } from "./plan-faults.ts";
import { PlanSource, type ArrivedPart, type PlanSourceTask } from "./plan-source.ts";

/**
 * Executes the plan in the body of a request, and answers like any graph; its bad lines are events of their own. `written`: the tasks
 * of a plan that the client has not sent, which the answer shows; it grows while `lines` reads them. `notify`: what of the graph the
 * operator's webhook is notified of; absent = what the run says. `named`: the key under which its graph is found again; absent = none.
 */
export async function executePlan(
  c: Context<AppEnv>,
  runId: string,
  {
    body,
    lines,
    written,
    ...rules
  }: {
    body: ReadableStream<Uint8Array>;
    lines: PlanLines<unknown>;
    written?: readonly Record<string, unknown>[];
  } & PlanRules,
): Promise<Response> {
  const { bytesMax } = bodyRoom(c);
  const source = new PlanSource(body, {
    lines,
    bytesMax,
    complete: async (task) => taskWithContext(c, runId, await taskWithTools(c, runId, task)),
  });
  const { graph, opened } = await openedPlan(c, runId, source, rules).catch((error: unknown) => {
    // Nobody reads the rest: a planner need not write it.
    source.stop();
    throw error;
  });
  if (opened.isFound) {
    // The same request at the same time was faster, and has a plan of its own.
    source.stop();
    return answerGraph(c, opened.group, opened.graph);
  }
  const faults = new PlanFaults();
  faults.add(graph.plan?.faults ?? []);
  const feeder = new PlanFeeder(c, new RunCaller(c.env, runId), { seq: opened.seq, source, faults });
  c.executionCtx.waitUntil(feeder.run());
  return answerGraph(c, { ...opened.group, planFaults: faults, ...(written && { written }) }, opened.graph);
}

type PlanRules = { notify?: Notify; named?: IdempotencyKey | null };

/** Opens the graph of a plan with its first tasks. Throws a Refusal if it has none, or they are refused. */
async function openedPlan(c: Context<AppEnv>, runId: string, source: PlanSource, { notify, named = null }: PlanRules) {
  const { graph, first } = await firstPart(source);
  const request = parseDag({ tasks: first.map(({ raw }) => raw) });
  if (!request.ok) throw new Refusal(request.reason);
  // Tiers are rules over a whole graph.
  const opened = await openGraph(c, runId, {
    request: { ...request.value, tasks: first.map(({ task }) => task), tiers: null, ...(notify && { notify }) },
    graph,
    named,
  });
  return { graph, opened };
}

/** Reads up to the first task. Throws a Refusal if the plan ends without one. */
async function firstPart(source: PlanSource): Promise<{ graph: CompiledGraph; first: PlanSourceTask[] }> {
  let graph = EMPTY_PLAN;
  for (;;) {
    const part = (await source.next()) ?? NOTHING;
    const appended = appendPlan(graph, part);
    if (appended.added.length > 0) {
      const first = appended.added.flatMap((index) => part.tasks[index] ?? []);
      return { graph: { ...appended.graph, version: 1 }, first };
    }
    graph = { ...appended.graph, version: 0 };
    if (graph.plan?.state !== "open") throw new Refusal(reasonOf(graph.plan?.faults ?? []));
  }
}

const NOTHING: ArrivedPart = { tasks: [], faults: [], line: 0, state: "open" };

function reasonOf(faults: readonly PlanFault[]) {
  if (faults.length === 0) return invalid("tasks", "the plan has no task").reason;
  return invalid(null, `is no plan: ${faults.map(({ line, message }) => `line ${line} ${message}`).join("; ")}`).reason;
}

/** Adds the rest of a plan to its graph. */
class PlanFeeder {
  readonly #c: Context<AppEnv>;
  readonly #run: RunCaller;
  readonly #seq: number;
  readonly #source: PlanSource;
  readonly #faults: PlanFaults;
  #held: ArrivedPart = NOTHING;
  #heartbeat = scheduler.wait(PLAN_HEARTBEAT_MS);
  #changes = 0;

  constructor(
    c: Context<AppEnv>,
    run: RunCaller,
    { seq, source, faults }: { seq: number; source: PlanSource; faults: PlanFaults },
  ) {
    this.#c = c;
    this.#run = run;
    this.#seq = seq;
    this.#source = source;
    this.#faults = faults;
  }

  /** Resolves when the plan has ended, or nobody wants the rest. Never rejects. */
  async run(): Promise<void> {
    try {
      while (!this.#source.hasEnded || this.#held !== NOTHING) await this.#step();
    } catch (error) {
      // The run object closes a plan from which nothing comes.
      console.error(`the plan of group ${this.#seq} of ${this.#run.runId} could not be added`, error);
    } finally {
      this.#source.stop();
    }
  }

  async #step(): Promise<void> {
    const part = this.#source.hasEnded ? NOTHING : await this.#source.next(this.#heartbeat);
    if (part === null) this.#heartbeat = scheduler.wait(PLAN_HEARTBEAT_MS);
    else this.#held = joined(this.#held, part);
    const { tasks, faults, state } = this.#held;
    const isBlock = tasks.length >= (this.#changes < PLAN_EAGER_CHANGES ? 1 : PLAN_BLOCK_TASKS);
    if (part !== null && !isBlock && faults.length === 0 && state === "open") return;
    await this.#send(this.#held);
  }

  async #send({ tasks, ...rest }: ArrivedPart): Promise<void> {
    const part = { ...rest, tasks: tasks.map(({ line, task }) => ({ line, task })) };
    const request = { seq: this.#seq, part };
    const reply = await this.#run.callWithRetry<AppendPlanReply>((stub) => stub.appendPlan(request));
    this.#held = NOTHING;
    if (tasks.length > 0) this.#changes += 1;
    this.#faults.add(reply.faults);
    const { env, executionCtx } = this.#c;
    // A lane that does not start is started again by the run's alarm.
    executionCtx.waitUntil(startLanes(env, this.#run.runId, reply.lanes));
    if (!reply.isOpen) this.#source.stop();
  }
}

/** Two parts of a plan, one after the other, as one. */
function joined(a: ArrivedPart, b: ArrivedPart): ArrivedPart {
  if (a === NOTHING) return b;
  const line = Math.max(a.line, b.line);
  return { tasks: [...a.tasks, ...b.tasks], faults: [...a.faults, ...b.faults], line, state: b.state };
}
