/** A suite is a set of cells (a variant at a width or concurrency) measured over rounds, and a table made of their medians. */
import type { PeerName } from "./peers/table.ts";
import { median } from "./stats.ts";

/** What one measurement of one cell found, by name with unit. */
export type Figures = Record<string, number>;

export type Cell = {
  variant: string;
  /** Width, or concurrency of the load. */
  at: number;
  /** Starts fresh processes, measures once, ends them. */
  measure: () => Promise<Figures>;
  /** Whether a failure is a result: true for gateways of others. Ours ends the bench. */
  mayFail?: boolean;
  /** Whether only the first round measures it. */
  isOnce?: boolean;
};

/** Median of one figure of one cell over the rounds. */
export type Median = (variant: string, at: number, figure: string) => number;

export type SuiteOptions = {
  /** Fewer requests and variants: to see that all works, not to compare. */
  quick: boolean;
  /** Root of another checkout whose gateway is measured beside this one's; undefined = none. */
  baseline: string | undefined;
  /** Gateways from PyPI that take part: they are installed into bench/.data first. */
  peers: readonly PeerName[];
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

export type Round = {
  round: number;
  variant: string;
  at: number;
  figures: Figures;
  /** Why there are no figures; absent = there are. */
  failed?: string;
};

/**
 * Measures every cell once per round. Variants of one width run one after the other, and every second round runs
 * backwards, so that a machine that gets slower or faster does so for all of them. A cell that may fail and does has the reason in its
 * round.
 */
export async function runRounds(suite: Suite, roundsMax: number, report: (line: string) => void): Promise<Round[]> {
  const measured: Round[] = [];
  const rounds = suite.isCount === true ? 1 : roundsMax;
  for (let round = 1; round <= rounds; round++) {
    const all = suite.cells.filter(({ isOnce }) => round === 1 || isOnce !== true);
    const cells = round % 2 === 1 ? all : all.toReversed();
    for (const cell of cells) {
      const { variant, at } = cell;
      const result = await resultOf(cell);
      measured.push({ round, variant, at, ...result });
      const text = "failed" in result ? `FAILED: ${result.failed}` : textOf(result.figures);
      report(`${suite.name} round ${round}/${rounds}: ${variant} at ${at}: ${text}`);
    }
  }
  return measured;
}

async function resultOf({ measure, mayFail }: Cell): Promise<Pick<Round, "figures" | "failed">> {
  try {
    return { figures: await measure() };
  } catch (error) {
    if (mayFail !== true) throw error;
    return { figures: {}, failed: reasonOf(error) };
  }
}

const REASON_CHARS_MAX = 200;

/** Why something failed, in one line that can be published: without paths and ports of this machine. */
export function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const lines = text.split("\n").map((line) => line.trim());
  return lines
    .filter((line) => line !== "")
    .join(" ")
    .replaceAll(/(?<![\w:/.])(?:\/[\w.@+-]+){2,}/g, "…")
    .replaceAll(/(127\.0\.0\.1|localhost):\d+/g, "$1")
    .slice(0, REASON_CHARS_MAX);
}

/** Medians of what `runRounds` measured, without the rounds that failed. */
export function medianOf(measured: readonly Round[]): Median {
  return (variant, at, figure) =>
    median(
      measured
        .filter((round) => round.variant === variant && round.at === at && round.failed === undefined)
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
