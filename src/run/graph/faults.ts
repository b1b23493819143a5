/** What is wrong with a graph: faults, for which it is refused, and warnings. All are found before anything runs. */
import { fieldMessage, type Reason } from "../../errors.ts";
import { CYCLE_IDS_MAX, GRAPH_FAULTS_MAX } from "../../limits.ts";

export type FaultCode =
  | "duplicate_id"
  | "unknown_dependency"
  | "self_reference"
  | "cycle"
  | "too_large"
  | "invalid_foreach"
  | "invalid_alternative"
  | "invalid_reference"
  | "invalid_condition"
  | "invalid_tier"
  | "started";

/** `path`: the field of the request, such as `tasks[3].foreach`; null = the graph as a whole. */
export type GraphFault = { code: FaultCode; path: string | null; message: string; cycle?: readonly string[] };

export type WarningCode = "orphans" | "long_task" | "short_prompt" | "unused_reference";
export type GraphWarning = { code: WarningCode; message: string; tasks: readonly string[] };

/** Collects the faults of one graph, up to a bound. */
export class Faults {
  readonly list: GraphFault[] = [];

  add(fault: GraphFault): void {
    if (this.list.length < GRAPH_FAULTS_MAX) this.list.push(fault);
  }

  get isEmpty(): boolean {
    return this.list.length === 0;
  }
}

/** The refusal of a graph: the messages of its faults, and the cycle and the field of the first that has one. */
export function graphReason(faults: readonly GraphFault[]): Reason {
  const message = faults.map(({ path, message: text }) => (path === null ? text : fieldMessage(path, text))).join("; ");
  const cycle = faults.find((fault) => fault.cycle !== undefined)?.cycle;
  const param = faults[0]?.path ?? null;
  return { reason: "invalid_graph", message, param, ...(cycle === undefined ? {} : { cycle: shown(cycle) }) };
}

/** The fault of a cycle: `cycle` begins and ends with the same id, and each task depends on the next. */
export function cycleFault(cycle: readonly string[]): GraphFault {
  const message = `cycle in the graph: ${shown(cycle).join(" → ")} (each task depends on the next)`;
  return { code: "cycle", path: null, message, cycle };
}

function shown(cycle: readonly string[]): readonly string[] {
  if (cycle.length <= CYCLE_IDS_MAX) return cycle;
  return [...cycle.slice(0, CYCLE_IDS_MAX - 2), "…", ...cycle.slice(-1)];
}
