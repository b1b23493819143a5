/** What a campaign prints. */
import type { Campaign } from "./campaign.ts";
import { PERSONALITIES } from "./personalities.ts";
import type { FaultKind } from "./verdict.ts";

const KINDS: readonly FaultKind[] = [
  "bill above limit",
  "spent below bill",
  "committed above limit",
  "overrun",
  "stuck",
];

/** A row for each personality: runs, calls, how they were answered, and faults. */
export function personalityTable({ results, faults }: Campaign): Record<string, string>[] {
  return PERSONALITIES.map(({ name }) => {
    const own = results.filter(({ plan }) => plan.personality.name === name);
    const statuses = (matches: (status: number) => boolean): number =>
      own.reduce(
        (sum, result) => sum + [...result.statuses].reduce((n, [s, count]) => n + (matches(s) ? count : 0), 0),
        0,
      );
    const spent = own.flatMap(({ runs }) => runs.slice(0, 1)).map(({ final }) => final.usd);
    const used = spent.filter(({ limit }) => limit !== null).map((usd) => usd.spent / (usd.limit ?? 1));
    return {
      upstream: name,
      runs: String(own.length),
      calls: String(own.reduce((sum, { calls }) => sum + calls, 0)),
      "200": String(statuses((status) => status === 200)),
      "400": String(statuses((status) => status === 400)),
      "402": String(statuses((status) => status === 402)),
      other: String(statuses((status) => ![0, 200, 400, 402].includes(status))),
      left: String(statuses((status) => status === 0)),
      "spent of limit": used.length === 0 ? "" : (used.reduce((sum, share) => sum + share, 0) / used.length).toFixed(2),
      faults: String(faults.filter(({ personality }) => personality === name).length),
    };
  });
}

export function faultTable({ faults, runs }: Campaign): Record<string, string>[] {
  return KINDS.map((kind) => {
    const own = faults.filter((fault) => fault.kind === kind);
    return {
      promise: kind,
      faults: String(own.length),
      "runs with it": `${new Set(own.map(({ run }) => run)).size} of ${runs}`,
    };
  });
}
