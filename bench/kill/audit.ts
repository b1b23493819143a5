/** Checks one round at its end: the client's replies, the log, the ledger and the upstream's calls. */
import { look } from "../budget/watch.ts";
import { ask } from "./ask.ts";
import type { Client, EndedGroup } from "./client.ts";
import type { Hit, Phase } from "./hit.ts";
import type { Instances } from "./instances.ts";
import { LogAudit } from "./log.ts";
import type { Looks } from "./looks.ts";
import { billNanoUsd, textOf } from "./provider.ts";
import { resendsOf, type Resends } from "./resends.ts";
import type { KillWorld } from "./world.ts";

export type Round = {
  run: string;
  client: string;
  phases: Phase[];
  budgetShare: number;
  slots: number;
  completed: number;
  refused: number;
  lost: number;
  /** Arrivals at the upstream. */
  calls: number;
  /** Most calls that the promise allows: slots, and what was in flight at the kills. */
  callsMax: number;
  /** Attempts that are charged at their reservation because a kill took their answer. */
  estimated: number;
  spentNanoUsd: number;
  billedNanoUsd: number;
  looks: number;
  resends: Omit<Resends, "faults">;
  /** Zeros where no Workflow is bound. */
  instances: Instances;
  faults: string[];
};

type Subject = { client: Client; runId: string; looks: Looks; hits: readonly Hit[]; instances?: Instances };

/** Asks for everything once more, and once more for nothing: posting again must not reach the upstream. */
export async function audit(world: KillWorld, { client, runId, looks, hits, instances }: Subject): Promise<Round> {
  const { plan } = client;
  const sends = world.provider.sendsOf(plan.name);
  const callsOf = (): number => sends.reduce((sum, { length }) => sum + length, 0);
  const calls = callsOf();
  const { group, replayed } = await client.post();
  const log = new LogAudit(await logLines(world, client, runId));
  const budget = await look(world.url, client.token);
  const faults = [...client.faults, ...log.faults, ...endFaults(client, group, log), ...chargeFaults(client, log)];
  const check = (holds: boolean, fault: string): void => void (holds || faults.push(fault));
  check(replayed, "posting again opened another group");
  check(callsOf() === calls, `posting again made ${callsOf() - calls} calls`);
  const ids = [...new Set([...client.ids, ...log.groupIds])];
  check(ids.length === 1 && log.groupIds.length === 1, `the group was seen as ${ids.join(", ")}`);
  check(!budget.anyReserved, `${budget.reserved} n$ are reserved in the end`);
  check(budget.spent === log.spentNanoUsd, `spent is ${budget.spent} n$, the log's charges ${log.spentNanoUsd}`);
  check(budget.calls === log.calls, `${budget.calls} calls are spent, ${log.calls} in the log`);
  check(budget.spent <= (budget.limit ?? Infinity), "more is spent than the limit");
  check(looks.above === 0, `${looks.above} looks saw more than the limit`);
  const billed = sends.reduce((sum, { length }, index) => sum + length * billNanoUsd(plan, index), 0);
  check(billed <= budget.spent, `${billed} n$ were billed, ${budget.spent} are spent`);
  const { faults: sentAgain, ...resends } = resendsOf(sends, { plan, hits, attempts: log.attempts });
  const tries = new Map<number, number>();
  for (const { index } of log.attempts) tries.set(index, (tries.get(index) ?? 0) + 1);
  const unreserved = sends.filter(({ length }, index) => length > (tries.get(index) ?? 0)).length;
  check(unreserved === 0, `${unreserved} slots were sent more often than reserved`);
  const callsMax = plan.slots + hits.filter(({ phase }) => phase !== "before").length * plan.maxParallel;
  check(calls <= callsMax, `${calls} calls, at most ${callsMax} are allowed`);
  const again = await logLines(world, client, runId);
  check(
    looks.lines.every((line, place) => line === again[place]),
    "a line of the log differs from what was read before",
  );
  const failed = group.errors.filter((error) => error !== null);
  return {
    run: plan.name,
    client: plan.client,
    phases: hits.map(({ phase }) => phase),
    budgetShare: plan.budgetShare,
    slots: plan.slots,
    completed: plan.slots - failed.length,
    refused: failed.filter(({ code }) => code === "budget_exhausted").length,
    lost: failed.filter(({ code }) => code === "upstream_error").length,
    calls,
    callsMax,
    estimated: log.attempts.filter(({ estimated }) => estimated).length,
    spentNanoUsd: budget.spent,
    billedNanoUsd: billed,
    looks: looks.count,
    resends,
    instances: instances ?? { calls: 0, resumed: 0 },
    faults: [...faults, ...sentAgain],
  };
}

/** Every slot has ended once, in its place, with the answer to its own prompt or for a reason that the plan explains. */
function endFaults({ plan }: Client, { results, errors, items }: EndedGroup, log: LogAudit): string[] {
  const faults: string[] = [];
  const lists = [results.length, errors.length, items.length];
  if (lists.some((length) => length !== plan.slots)) faults.push(`${lists.join(", ")} results, errors, items`);
  let ends = 0;
  for (let index = 0; index < plan.slots; index += 1) {
    const error = errors[index];
    ends += log.endsOf.get(index) ?? 0;
    if ((log.endsOf.get(index) ?? 0) > 1) faults.push(`slot ${index} ended more than once`);
    if (items[index]?.index !== index) faults.push(`item ${index} is not in its place`);
    if (error === null && results[index] !== textOf(plan, index)) faults.push(`slot ${index} has another's answer`);
    if (error?.code === "budget_exhausted" && plan.budgetShare < 1) continue;
    if (error?.code === "upstream_error" && plan.onLost === "fail") continue;
    if (error !== null) faults.push(`slot ${index} failed: ${JSON.stringify(error)}`);
  }
  if (ends + log.cancelled !== plan.slots) faults.push(`${ends} + ${log.cancelled} ends of ${plan.slots} slots`);
  return faults;
}

/** An answered attempt is charged its cost; any other was lost and stays charged at its reservation. */
function chargeFaults({ plan }: Client, { attempts }: LogAudit): string[] {
  const faults: string[] = [];
  for (const { index, outcome, estimated, chargedNanoUsd } of attempts) {
    const bill = billNanoUsd(plan, index);
    if (outcome === "success" && (estimated || chargedNanoUsd !== bill))
      faults.push(`slot ${index} is charged ${chargedNanoUsd} n$, billed ${bill}`);
    if (outcome !== "success" && !(outcome === "unknown" && estimated))
      faults.push(`an attempt of slot ${index} ended as ${outcome}`);
  }
  return faults;
}

async function logLines(world: KillWorld, { token }: Client, runId: string): Promise<string[]> {
  const answer = await ask(`${world.url}/runs/${runId}/log`, token);
  if (answer?.status !== 200) throw new Error(`the log was answered ${answer?.status}`);
  return answer.text.split("\n").filter((text) => text !== "");
}
