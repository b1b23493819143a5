/**
 * The program of `POST /plan`: one call writes a plan, a second one if the first is refused; the graph runs; a joiner answers, or
 * has another plan written. Its effects are calls and graphs of the run, so the run's budget and log have all of it.
 */
import {
  joined,
  plannedTasks,
  type Joined,
  type PlannedTask,
  type PlanReply,
  type PlanRequest,
  type PlanRound,
} from "../../../contract/graph/plan.ts";
import type { Parsed } from "../../../contract/errors.ts";
import { Refusal, toWire, type WireError } from "../../../errors.ts";
import {
  JOIN_SCHEMA,
  joinerPrompt,
  plannerPrompt,
  planSchema,
  repairPrompt,
  type OfferedTool,
  type Schema,
} from "./prompts.ts";

/** What a graph ended as. `all`: the output of each task; `outputs`: of those that nothing depends on. */
export type GraphEnd = {
  id: string;
  status: string;
  outputs: Record<string, unknown>;
  all: Record<string, unknown>;
  remainingUsd: number | null;
};

export type PlanEffects<Graph> = {
  /** The tools that tasks of a plan may call. */
  tools: readonly OfferedTool[];
  /** One call, whose answer fits the schema. Throws a Refusal. */
  call: (prompt: string, schema: Schema) => Promise<unknown>;
  /** Whether the tasks are a graph. */
  check: (tasks: readonly PlannedTask[]) => Parsed<Graph>;
  /** Runs a graph to its end. Throws a Refusal. */
  run: (graph: Graph) => Promise<GraphEnd>;
  /** Whether an earlier request with the same key has made the next call. */
  isRepeated: () => Promise<boolean>;
};

export type Planned<Graph> = { tasks: PlannedTask[]; graph: Graph; repaired: boolean };

/** Has a plan written, twice at most. Throws a Refusal if neither is one. */
export async function planned<Graph>(
  { goal, tasksMax }: PlanRequest,
  before: readonly PlanRound[],
  effects: PlanEffects<Graph>,
): Promise<Planned<Graph>> {
  const { tools } = effects;
  const prompt = plannerPrompt(goal, { tasksMax, tools }, before);
  const schema = planSchema(tasksMax, tools);
  const first = await effects.call(prompt, schema);
  const { tasks } = plannedTasks().parse(first);
  const checked = effects.check(tasks);
  if (checked.ok) return { tasks, graph: checked.value, repaired: false };
  const message = toWire(checked.reason).error.message;
  const second = plannedTasks().parse(await effects.call(repairPrompt(prompt, first, message), schema));
  const again = effects.check(second.tasks);
  if (!again.ok) throw new Refusal(again.reason);
  return { tasks: second.tasks, graph: again.value, repaired: true };
}

/** What has become of a program, without what it used. */
export type PlanOutcome = Omit<PlanReply, "object" | "usage" | "error"> & { error: WireError | null };

/** Runs the first plan, and further ones while the joiner requests them. A call that fails ends the program with what it has. */
export async function executed<Graph>(
  request: PlanRequest,
  first: Planned<Graph>,
  effects: PlanEffects<Graph>,
): Promise<PlanOutcome> {
  const rounds: PlanRound[] = [];
  try {
    return outcomeOf(rounds, await untilStopped(request, first, rounds, effects), null);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return outcomeOf(rounds, "error", toWire(error.reason).error);
  }
}

/** The outcome of a plan that is not to run. */
export function notRun<Graph>({ tasks, repaired }: Planned<Graph>): PlanOutcome {
  return outcomeOf([{ tasks, repaired, graph: null, status: null, outputs: {}, decision: null }], "planned", null);
}

async function untilStopped<Graph>(
  request: PlanRequest,
  first: Planned<Graph>,
  rounds: PlanRound[],
  effects: PlanEffects<Graph>,
): Promise<PlanReply["stopped"]> {
  const { goal, replan } = request;
  for (let plan = first; ;) {
    const { id, status, outputs, all, remainingUsd } = await effects.run(plan.graph);
    const { tasks, repaired } = plan;
    const round: PlanRound = { tasks, repaired, graph: id, status, outputs, decision: null };
    rounds.push(round);
    if (replan === null) return "no_replan";
    const decision: Joined = joined().parse(await effects.call(joinerPrompt(goal, tasks, all), JOIN_SCHEMA));
    round.decision = decision;
    if (decision.action === "finish") return "finished";
    if (rounds.length > replan.roundsMax) return "max_rounds";
    const isShort = remainingUsd !== null && remainingUsd < replan.minBudgetUsd;
    // What an earlier request went on with had the budget then, whatever is left by now.
    if (isShort && !(await effects.isRepeated())) return "min_budget";
    const next = await planned(request, rounds, effects);
    const isSame = rounds.some((earlier) => isSamePlan(earlier.tasks, next.tasks));
    if (isSame && replan.stopIfSame) return "same_plan";
    plan = next;
  }
}

/** Whether two plans have the same tasks: the same calls would be made once more. */
function isSamePlan(a: readonly PlannedTask[], b: readonly PlannedTask[]): boolean {
  return formOf(a) === formOf(b);
}

function formOf(tasks: readonly PlannedTask[]): string {
  const rows = tasks.map(({ dependencies = [], ...task }) => JSON.stringify([task, [...dependencies].sort()]));
  return rows.sort().join("\n");
}

function outcomeOf(rounds: PlanRound[], stopped: PlanReply["stopped"], error: WireError | null): PlanOutcome {
  const answer = rounds.findLast(({ decision }) => decision !== null)?.decision?.answer ?? null;
  return { stopped, answer, outputs: rounds.at(-1)?.outputs ?? {}, rounds, error };
}
