/** Holds a storm against the upstream's bill. A fault is a broken promise of the gateway. */
import { billedIn, DIMENSIONS, type Dimension } from "./budget.ts";
import type { Account, Entry, Mock } from "./mock.ts";
import { shown } from "./mock.ts";
import type { StormResult, StormRun } from "./storm.ts";

export type FaultKind = "bill above limit" | "spent below bill" | "committed above limit" | "overrun" | "stuck";

export type Fault = {
  kind: FaultKind;
  run: number;
  personality: string;
  what: string;
  /** The dearest requests of the run as the upstream got them, and why they were dear. */
  suspects: readonly string[];
};

/** `firstCalls`: how many first calls of never-seen templates, or of images that nobody has seen, the storm holds. */
export function faultsOf(result: StormResult, mock: Mock, firstCalls = 0): Fault[] {
  const [root, ...children] = result.runs;
  const { isLiedTo = false } = result.plan.personality;
  if (root === undefined) return [];
  const faults = result.runs.flatMap((run) => {
    const below = run === root ? children : [];
    // A first call that says less than it costs, and whose outcome nobody learns, stays charged at what it said.
    const isUndercharged = firstCalls > 0 && isLiedTo;
    return runFaults(run, accountsOf(mock, [run, ...below]), result).filter(
      ({ kind }) => kind !== "spent below bill" || !isUndercharged,
    );
  });
  if (result.overruns > firstCalls) {
    const account = accountsOf(mock, result.runs);
    faults.push(fault(result, "overrun", `${result.overruns} overrun events`, account));
  }
  return faults;
}

/** What several runs have been billed together. */
function accountsOf(mock: Mock, runs: readonly StormRun[]): Account {
  const accounts = runs.map(({ number }) => mock.accountOf(number));
  const sum = (of: (account: Account) => number): number => accounts.reduce((total, account) => total + of(account), 0);
  return {
    nanoUsd: sum(({ nanoUsd }) => nanoUsd),
    promptTokens: sum(({ promptTokens }) => promptTokens),
    completionTokens: sum(({ completionTokens }) => completionTokens),
    answered: sum(({ answered }) => answered),
    entries: accounts.flatMap(({ entries }) => entries),
  };
}

function runFaults(run: StormRun, account: Account, result: StormResult): Fault[] {
  const faults: Fault[] = [];
  const billed = billedIn(account);
  for (const dimension of DIMENSIONS) {
    const { limit, spent, reserved } = run.final[dimension];
    if (limit === null) continue;
    const facts = `${dimension}: billed ${billed[dimension]}, spent ${spent}, limit ${limit}`;
    const add = (kind: FaultKind) => faults.push(fault(result, kind, facts, account, dimension));
    if (billed[dimension] > limit) add("bill above limit");
    if (spent < billed[dimension]) add("spent below bill");
    if (reserved !== 0) add("stuck");
  }
  for (const over of run.over.slice(0, 1)) faults.push(fault(result, "committed above limit", over, account));
  return faults;
}

const SUSPECTS = 3;

function fault(
  { plan }: StormResult,
  kind: FaultKind,
  what: string,
  account: Account,
  dimension: Dimension = "usd",
): Fault {
  const size = ({ billed }: Entry): number => {
    if (billed === null) return 0;
    if (dimension === "prompt_tokens") return billed.promptTokens;
    return dimension === "completion_tokens" ? billed.completionTokens : billed.nanoUsd;
  };
  const dearest = [...account.entries].sort((a, b) => size(b) - size(a)).slice(0, SUSPECTS);
  const suspects = dearest.map(
    (entry) =>
      `${entry.family} ~${entry.run}.${entry.request}~ ${entry.ending}: ${entry.billed?.promptTokens ?? 0}+${entry.billed?.completionTokens ?? 0} tokens, ` +
      `$${((entry.billed?.nanoUsd ?? 0) / 1e9).toFixed(6)}, cap read ${entry.billed?.cap ?? "none"}, ${entry.billed?.notes.join("; ") ?? ""}\n      ${shown(entry.body)}`,
  );
  return { kind, run: plan.run, personality: plan.personality.name, what, suspects };
}
