/** The report on a group as JSON, and in the forms that two other systems read; each is written while slots are read. */
import { isFinalState } from "../../run/queue/slot.ts";
import { usdOf } from "../../run/money/money.ts";
import type { MakeCalls } from "../../run/answers/calls.ts";
import type { GroupView, SlotView } from "../../objects/methods/groups.ts";
import { aggregationOf, type MemberOf } from "./aggregation.ts";
import { GroupOutcome, outcomeOf } from "./outcome.ts";
import { TIER_NAMES } from "../../run/answers/tiers.ts";
import {
  actionFor,
  agentOf,
  cutTo,
  failedTiers,
  FINDING_CHARS,
  impactOf,
  locationOf,
  statusOf,
} from "./report-facts.ts";
import { slotError } from "./slot.ts";
import { endIndexOf, slotPages } from "./slot-pages.ts";
import { stopFields, tierFields } from "./rule-fields.ts";

/** `memberOf`: which slots of a graph `aggregate` combines. */
export type ReportSource = {
  group: GroupView;
  slotsFrom: (index: number) => Promise<SlotView[]>;
  memberOf?: MemberOf;
  /** Makes the calls that combine its answers; absent = none do. */
  makeCalls?: MakeCalls;
};

/** The tables of the Markdown report as lists: agents, failures, metrics, and what the answers were combined to. */
export async function* reportJson(source: ReportSource): AsyncGenerator<string> {
  const { group } = source;
  yield `{"object":"report","id":${JSON.stringify(group.id)},"status":"${group.status}","agents":[`;
  const outcomes = new GroupOutcome();
  const tiers = failedTiers(group);
  yield* listed(source, (slot) => {
    const ended = outcomeOf(slot);
    outcomes.add(ended);
    const place = { output_location: locationOf(group.id, slot) };
    const findings = slot.state === "completed" ? cutTo(slot.text ?? "", FINDING_CHARS) : null;
    return { agent: agentOf(slot), status: statusOf(slot), ...ended, ...place, key_findings: findings };
  });
  yield `],"failed":[`;
  yield* listed(source, (slot) => {
    const error = slotError(slot);
    if (error === null) return null;
    const { code, message } = error;
    const tier = tiers?.get(slot.index);
    const action = actionFor(error, { tier, retryRecommended: outcomeOf(slot).retry_recommended === true });
    const named = { agent: agentOf(slot), ...(tier !== undefined && { tier: TIER_NAMES[tier] }) };
    return { ...named, error: { code, message }, impact: impactOf(slot), action };
  });
  const { aggregate, stop } = group;
  const combined =
    aggregate === undefined || group.status === "running"
      ? {}
      : { aggregation: await aggregationOf(aggregate, source) };
  yield `],${JSON.stringify({ ...outcomes.ended, metrics: reportMetrics(group), ...stopFields(stop), ...tierFields(group.tierFailures), ...combined }).slice(1)}`;
}

function reportMetrics({ metrics, count, counts, usage }: GroupView) {
  return {
    ...metrics,
    agents: count,
    completed: counts.completed,
    peak_concurrency: metrics.peak_parallel,
    cost: usdOf(usage.costNanoUsd),
  };
}

/**
 * A status and a result for each task, as the agent coordinator's files have them, and what its monitor shows. Times are
 * in seconds; a task's end counts the time of its attempts, without the pauses between them.
 */
export async function* coordinatorJson(source: ReportSource): AsyncGenerator<string> {
  const { group } = source;
  yield `{"format":"coordinator","tasks":[`;
  let last: string | null = null;
  let anyFailed = false;
  yield* listed(source, (slot) => {
    const task = coordinatorTask(group, slot);
    if (task.result?.success === true) last = cutTo(task.result.output ?? "", FINDING_CHARS);
    anyFailed ||= task.result?.success === false;
    return task;
  });
  const { queued, running } = group.counts;
  const isActive = group.status === "running";
  const visibility = {
    status: isActive ? "active" : anyFailed ? "error" : "idle",
    task: group.id,
    progress: group.count === 0 ? 1 : Math.round(((group.count - queued - running) / group.count) * 1_000) / 1_000,
    last_output: last,
  };
  yield `],"visibility":${JSON.stringify(visibility)}}`;
}

function coordinatorTask(group: GroupView, slot: SlotView) {
  const name = { agent: slot.model ?? "unknown", task_id: agentOf(slot) };
  const success = slot.state === "completed";
  const hasEnded = isFinalState(slot.state);
  const startedAtMs = slot.attempts === 0 ? null : group.openedAtMs + slot.queuedMs;
  const duration = hasEnded ? slot.latencyMs / 1_000 : null;
  const status = {
    ...name,
    status: success ? "completed" : hasEnded ? "error" : slot.state === "running" ? "running" : "pending",
    started_at: startedAtMs === null ? null : new Date(startedAtMs).toISOString(),
    completed_at: hasEnded && startedAtMs !== null ? new Date(startedAtMs + slot.latencyMs).toISOString() : null,
    duration,
  };
  if (!hasEnded) return { status, result: null };
  const output = success ? (slot.text ?? "") : null;
  return { status, result: { ...name, success, output, error: slotError(slot)?.message ?? null, duration } };
}

/** The result of a swarm: agents by their id; agents with the same id are distinguished by their index. */
export async function* swarmJson(source: ReportSource): AsyncGenerator<string> {
  const { group } = source;
  const failedAgents: string[] = [];
  const successfulAgents: string[] = [];
  const known = new Set<string>();
  yield `{"agentResults":{`;
  for await (const slots of slotPages({ count: endIndexOf(group), slotsFrom: source.slotsFrom })) {
    const members: string[] = [];
    for (const slot of slots) {
      const wanted = slot.id ?? `agent-${slot.index}`;
      const agentId = known.has(wanted) ? `${wanted}#${slot.index}` : wanted;
      const separator = known.size === 0 ? "" : ",";
      known.add(agentId);
      if (slot.state === "completed") successfulAgents.push(agentId);
      else if (isFinalState(slot.state)) failedAgents.push(agentId);
      members.push(`${separator}${JSON.stringify(agentId)}:${JSON.stringify(swarmAgent(agentId, slot))}`);
    }
    yield members.join("");
  }
  const success = group.status !== "running" && failedAgents.length === 0;
  const rest = { success, totalDuration: group.metrics.wall_ms, failedAgents, successfulAgents };
  yield `},${JSON.stringify(rest).slice(1)}`;
}

function swarmAgent(agentId: string, slot: SlotView) {
  const completed = slot.state === "completed";
  const status = completed ? "completed" : slot.state === "failed" ? "failed" : "terminated";
  return {
    agentId,
    status: isFinalState(slot.state) ? status : slot.state,
    output: completed ? (slot.text ?? "") : null,
    error: slotError(slot)?.message ?? null,
    duration: slot.latencyMs,
  };
}

/** The elements that the slots of a group have in a list; null = none. */
async function* listed(
  { group, slotsFrom }: ReportSource,
  show: (slot: SlotView) => object | null,
): AsyncGenerator<string> {
  let isFirst = true;
  for await (const slots of slotPages({ count: endIndexOf(group), slotsFrom })) {
    const elements = slots.flatMap((slot) => show(slot) ?? []).map((element) => JSON.stringify(element));
    if (elements.length === 0) continue;
    yield `${isFirst ? "" : ","}${elements.join(",")}`;
    isFirst = false;
  }
}
