/** A suite is a set of cells (a variant at a width or concurrency) measured over rounds, and a table made of their medians. */
import { median } from "./stats.ts";

/** What one measurement of one cell found, by name with unit. */
export type Figures = Record<string, number>;

export type Cell = {
  variant: string;
  /** Width, or concurrency of the load. */
  at: number;
  /** Starts fresh processes, measures once, ends them. */
  measure: () => Promise<Figures>;
};

/** Median of one figure of one cell over the rounds. */
export type Median = (variant: string, at: number, figure: string) => number;

export type SuiteOptions = {
  /** Fewer requests and variants: to see that all works, not to compare. */
  quick: boolean;
  /** Root of another checkout whose gateway is measured beside this one's; undefined = none. */
  baseline: string | undefined;
  /** Whether gateways from PyPI take part: they are installed into bench/.data first. */
  peers: boolean;
};

export type Suite = {
  name: string;
  title: string;
  /** What is measured, for the page that is made of the results. */
  about?: string;
  /** True if it counts calls or money, which hardly differ from round to round: it is measured once. */
  isCount?: boolean;
  cells: readonly Cell[];
  /** Rows for people; each value is text. */
  table: (of: Median) => Record<string, string>[];
};

export type Round = { round: number; variant: string; at: number; figures: Figures };

/**
 * Measures every cell once per round. Variants of one width run one after the other, and every second round runs
 * backwards, so that a machine that gets slower or faster does so for all of them.
 */
export async function runRounds(suite: Suite, roundsMax: number, report: (line: string) => void): Promise<Round[]> {
  const measured: Round[] = [];
  const rounds = suite.isCount === true ? 1 : roundsMax;
  for (let round = 1; round <= rounds; round++) {
    const cells = round % 2 === 1 ? suite.cells : suite.cells.toReversed();
    for (const { variant, at, measure } of cells) {
      const figures = await measure();
      measured.push({ round, variant, at, figures });
      report(`${suite.name} round ${round}/${rounds}: ${variant} at ${at}: ${textOf(figures)}`);
    }
  }
  return measured;
}

/** Medians of what `runRounds` measured. */
export function medianOf(measured: readonly Round[]): Median {
  return (variant, at, figure) =>
    median(
      measured
        .filter((round) => round.variant === variant && round.at === at)
        .map((round) => round.figures[figure] ?? Number.NaN),
    );
}

/** A ratio with its target: `0.52 (target >= 0.45)`, and ` MISSED` where it is not met. */
export function against(value: number, relation: ">=" | "<=", target: number): string {
  if (Number.isNaN(value)) return "not measured";
  const met = relation === ">=" ? value >= target : value <= target;
  return `${value.toFixed(2)} (target ${relation} ${target})${met ? "" : " MISSED"}`;
}

function textOf(figures: Figures): string {
  return Object.entries(figures)
    .map(([name, value]) => `${name} ${value < 10 ? value.toFixed(2) : Math.round(value)}`)
    .join(", ");
}
