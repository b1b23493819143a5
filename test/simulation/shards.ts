/** A simulation in several processes, each with a shard of its programs, and what they have together. */
import { fork } from "node:child_process";
import { createHash } from "node:crypto";
import type { Outcome } from "./simulation.ts";

/** What ends a simulation before its time. */
export const END_SIGNALS = ["SIGTERM", "SIGINT"] as const;

/** What the process of a shard reports at its end. */
export type ShardReport = { outcome: Outcome; cpuSeconds: number };

/**
 * Runs this program once for each shard, with the same arguments. Rejects if one of the processes ends without a report. A signal to
 * end is handed on: each shard then reports how far it has come.
 *
 * @param program The path of the program, which takes `--shard=1/2` and sends a `ShardReport` to its parent.
 */
export async function inShards(count: number, program: string, args: readonly string[]): Promise<ShardReport> {
  const shards = Array.from({ length: count }, (_, index) =>
    reportOf(program, [...args, `--shard=${index + 1}/${count}`]),
  );
  const reports = await Promise.all(shards);
  return {
    outcome: together(reports.map(({ outcome }) => outcome)),
    cpuSeconds: sum(reports, ({ cpuSeconds }) => cpuSeconds),
  };
}

function reportOf(program: string, args: readonly string[]): Promise<ShardReport> {
  return new Promise((resolve, reject) => {
    let report: ShardReport | null = null;
    const child = fork(program, args, { stdio: "inherit" });
    for (const signal of END_SIGNALS) process.on(signal, () => child.kill(signal));
    child.on("message", (message) => {
      if (isReport(message)) report = message;
    });
    child.on("error", reject);
    child.on("exit", (code) => {
      if (report === null) reject(new Error(`${args.at(-1) ?? ""} ended with ${code} before its report`));
      else resolve(report);
    });
  });
}

function isReport(message: unknown): message is ShardReport {
  return typeof message === "object" && message !== null && "outcome" in message;
}

/** The outcome of all shards: sums, and the hours of the longest. */
export function together(outcomes: readonly Outcome[]): Outcome {
  const fingerprint = createHash("sha256");
  for (const outcome of outcomes) fingerprint.update(outcome.fingerprint);
  return {
    violations: outcomes.flatMap(({ violations }) => violations),
    ended: sum(outcomes, ({ ended }) => ended),
    completed: sum(outcomes, ({ completed }) => completed),
    failed: sum(outcomes, ({ failed }) => failed),
    answered: sum(outcomes, ({ answered }) => answered),
    upstreamCalls: sum(outcomes, ({ upstreamCalls }) => upstreamCalls),
    repeated: sum(outcomes, ({ repeated }) => repeated),
    objectCalls: sum(outcomes, ({ objectCalls }) => objectCalls),
    faults: {
      workerDeaths: sum(outcomes, ({ faults }) => faults.workerDeaths),
      machineDeaths: sum(outcomes, ({ faults }) => faults.machineDeaths),
      resets: sum(outcomes, ({ faults }) => faults.resets),
      deploys: sum(outcomes, ({ faults }) => faults.deploys),
    },
    virtualHours: Math.max(...outcomes.map(({ virtualHours }) => virtualHours)),
    events: sum(outcomes, ({ events }) => events),
    awakeHours: sum(outcomes, ({ awakeHours }) => awakeHours),
    fingerprint: fingerprint.digest("hex").slice(0, 16),
  };
}

function sum<T>(all: readonly T[], figureOf: (each: T) => number): number {
  return all.reduce((total, each) => total + figureOf(each), 0);
}
