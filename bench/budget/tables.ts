/** The storms against their promises, as rows for people. */
import type { Crash } from "./crash.ts";
import type { Storm } from "./scenario.ts";

/** Least share of the limit that is spent before a call is refused. */
const USE_MIN = 0.95;

/** One row per guarantee, one column per storm; a violation is marked. */
export function stormTable(storms: readonly Storm[]): Record<string, string>[] {
  const row = (what: string, of: (storm: Storm) => string): Record<string, string> => ({
    promise: what,
    ...Object.fromEntries(storms.map((storm) => [storm.scenario, of(storm)])),
    // Columns but the last are set to the right.
    "": "",
  });
  return [
    row("calls worth ÷ limit", ({ worth, limit }) => (worth / limit).toFixed(1)),
    row("limit, n$", ({ limit }) => count(limit)),
    row("upstream's own bill, n$", ({ bill }) => count(bill)),
    row("spent, n$", ({ spent }) => count(spent)),
    row("overshoot: bill above limit, n$ = 0", ({ bill, limit }) =>
      kept(count(Math.max(0, bill - limit)), bill <= limit),
    ),
    row("looks at which spent + reserved > limit = 0", ({ violations, looks }) =>
      kept(`${violations} of ${count(looks)}`, violations === 0 && looks > 0),
    ),
    row("most spent + reserved, share of limit", ({ committedMax, limit }) => share(committedMax / limit)),
    row("known outcomes: calls", ({ known }) => count(known.calls)),
    row("known outcomes: spent - bill, n$ = 0", ({ known }) =>
      kept(count(known.charged - known.billed), known.unequal === 0 && known.charged === known.billed),
    ),
    row("all others: spent - bill, n$ >= 0", ({ rest }) =>
      kept(count(rest.charged - rest.billed), rest.charged >= rest.billed),
    ),
    row(`spent at the first refusal >= ${share(USE_MIN)}`, ({ answers }) =>
      kept(share(answers.spentAtRefusalMin), answers.spentAtRefusalMin >= USE_MIN && answers.refused > 0),
    ),
    row(`spent in the end >= ${share(USE_MIN)}`, ({ spent, limit }) =>
      kept(share(spent / limit), spent / limit >= USE_MIN),
    ),
    row("reserved after the storm = 0, after ms", ({ releasedMs }) => count(Math.round(releasedMs))),
    row("completed / refused", ({ answers }) => `${answers.completed} / ${answers.refused}`),
    row("left / lost and sent again", ({ answers }) => `${answers.left} / ${answers.lost}`),
    row("storm, s", ({ wallMs }) => (wallMs / 1_000).toFixed(1)),
  ];
}

export function crashTable({ reservedBefore, reservedAfter, spentAfter, silentMs }: Crash): Record<string, string>[] {
  const whole = spentAfter === reservedBefore;
  return [
    {
      "reserved at the crash, n$": count(reservedBefore),
      "no request for, s": (silentMs / 1_000).toFixed(0),
      "reserved then = 0": kept(count(reservedAfter), reservedAfter === 0),
      "charged as estimates = reserved": kept(count(spentAfter), whole),
    },
  ];
}

function kept(text: string, holds: boolean): string {
  return holds ? text : `${text} MISSED`;
}

function share(of: number): string {
  return `${(of * 100).toFixed(2)} %`;
}

function count(of: number): string {
  return of.toLocaleString("en-US");
}
