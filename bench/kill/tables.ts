/** Rounds against the promises, as rows for people and as figures for a file. */
import type { Round } from "./audit.ts";

/** Longest from a restart until everything runs again, ms. */
const RECOVERY_MS_MAX = 60_000;

/** Rounds that are named because they took longest. */
const SLOWEST = 5;

export type Summary = {
  rounds: number;
  kills: { opening: number; open: number };
  hitTwiceOrMore: number;
  /** Rounds executed by Workflow instances, calls that instances made before the first kill, instances that ran again. */
  instances: { rounds: number; calls: number; resumed: number };
  slots: number;
  completed: number;
  refused: number;
  lost: number;
  calls: number;
  callsMax: number;
  unanswered: number;
  forgotten: number;
  forgottenMsMax: number;
  estimated: number;
  spentNanoUsd: number;
  billedNanoUsd: number;
  looks: number;
  /** ms after the gateway was up: worst over rounds. `silent`: without requests. */
  recovery: { silent: Recovery; polled: Recovery };
  slowest: { run: string; client: string; phases: string[]; budgetShare: number; resends: Round["resends"] }[];
  faults: { run: string; fault: string }[];
};

type Recovery = { rounds: number; firstMsMax: number; givenUpMsMax: number; againMsMax: number; pauseMsMax: number };

export function summaryOf(rounds: readonly Round[]): Summary {
  const sum = (of: (round: Round) => number): number => rounds.reduce((total, round) => total + of(round), 0);
  const phases = rounds.flatMap((round) => round.phases);
  return {
    rounds: rounds.length,
    kills: {
      opening: phases.filter((phase) => phase === "opening").length,
      open: phases.filter((phase) => phase === "open").length,
    },
    hitTwiceOrMore: rounds.filter((round) => round.phases.length > 1).length,
    instances: {
      rounds: rounds.filter(({ instances }) => instances.calls > 0).length,
      calls: sum(({ instances }) => instances.calls),
      resumed: sum(({ instances }) => instances.resumed),
    },
    slots: sum(({ slots }) => slots),
    completed: sum(({ completed }) => completed),
    refused: sum(({ refused }) => refused),
    lost: sum(({ lost }) => lost),
    calls: sum(({ calls }) => calls),
    callsMax: sum(({ callsMax }) => callsMax),
    unanswered: sum(({ resends }) => resends.unanswered),
    forgotten: sum(({ resends }) => resends.forgotten),
    forgottenMsMax: Math.max(0, ...rounds.map(({ resends }) => resends.forgottenMsMax)),
    estimated: sum(({ estimated }) => estimated),
    spentNanoUsd: sum(({ spentNanoUsd }) => spentNanoUsd),
    billedNanoUsd: sum(({ billedNanoUsd }) => billedNanoUsd),
    looks: sum(({ looks }) => looks),
    recovery: {
      silent: recoveryOf(rounds.filter((round) => wasSilent(round))),
      polled: recoveryOf(rounds.filter((round) => !wasSilent(round))),
    },
    slowest: rounds
      .toSorted((a, b) => recoveredMs(b) - recoveredMs(a))
      .slice(0, SLOWEST)
      .map(({ run, client, phases, budgetShare, resends }) => ({ run, client, phases, budgetShare, resends })),
    faults: rounds.flatMap(({ run, faults }) => faults.map((fault) => ({ run, fault }))),
  };
}

/** A client that did not get its group's id had to post again. */
function wasSilent({ client, phases }: Round): boolean {
  return (client === "silent" || client === "leaves") && phases.at(-1) === "open";
}

function recoveredMs({ resends: { againMs, givenUpMs } }: Round): number {
  return Math.max(againMs ?? 0, givenUpMs ?? 0);
}

function recoveryOf(rounds: readonly Round[]): Recovery {
  const most = (of: (round: Round) => number | null): number => Math.max(0, ...rounds.map((round) => of(round) ?? 0));
  return {
    rounds: rounds.length,
    firstMsMax: most(({ resends }) => resends.firstMs),
    givenUpMsMax: most(({ resends }) => resends.givenUpMs),
    againMsMax: most(({ resends }) => resends.againMs),
    pauseMsMax: most(({ resends }) => resends.pauseMs),
  };
}

/** One row per promise. */
export function summaryTable(of: Summary): Record<string, string>[] {
  const { silent, polled } = of.recovery;
  return [
    row("rounds / hit more than once", `${of.rounds} / ${of.hitTwiceOrMore}`),
    row("kills while the POST was on its way / while the batch ran", `${of.kills.opening} / ${of.kills.open}`),
    row(
      "rounds of Workflow instances / their calls before a kill / resumed",
      [of.instances.rounds, of.instances.calls, of.instances.resumed].map(count).join(" / "),
    ),
    row("slots: each ended once, in its place, with its answer", count(of.slots)),
    row(
      "completed / refused for money / lost with on_lost: fail",
      [of.completed, of.refused, of.lost].map(count).join(" / "),
    ),
    row(
      "upstream calls <= slots + in flight at the kills",
      `${count(of.calls)} <= ${count(of.callsMax)}`,
      of.calls <= of.callsMax,
    ),
    row("unanswered at the kills / answered, repeated", `${count(of.unanswered)} / ${count(of.forgotten)}`),
    row("oldest answer that a kill took back", `${of.forgottenMsMax.toFixed(0)} ms`),
    row("attempts charged as estimates", count(of.estimated)),
    row(
      "spent = the log's charges >= billed, n$",
      `${count(of.spentNanoUsd)} >= ${count(of.billedNanoUsd)}`,
      of.billedNanoUsd <= of.spentNanoUsd,
    ),
    row("looks at the budget, none above its limit", count(of.looks)),
    ...recovery("without requests", silent),
    ...recovery("with requests", polled),
    row("faults = 0", count(of.faults.length), of.faults.length === 0),
  ];
}

function recovery(who: string, of: Recovery): Record<string, string>[] {
  const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
  const { rounds, firstMsMax, givenUpMsMax, againMsMax, pauseMsMax } = of;
  const holds = Math.max(firstMsMax, givenUpMsMax) <= RECOVERY_MS_MAX;
  return [
    row(
      `${who} (${rounds} rounds): first call / given up <= 60 s`,
      [firstMsMax, givenUpMsMax].map(seconds).join(" / "),
      holds,
    ),
    row(`${who}: retried / longest pause from then on`, [againMsMax, pauseMsMax].map(seconds).join(" / ")),
  ];
}

function row(promise: string, figure: string, holds = true): Record<string, string> {
  return { promise, figure: holds ? figure : `${figure} MISSED` };
}

function count(of: number): string {
  return of.toLocaleString("en-US");
}
