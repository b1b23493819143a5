/** The table that README shows, this gateway beside others, a row for each command; and who is ahead in each of its figures. */
import { medianIn, type ResultFile } from "./data.ts";

type Figure = {
  /** Which of the figures of its row it is; "" = its row has one. */
  label: string;
  name: string;
  /** Whether that of no gateway is subtracted. */
  isAdded?: boolean;
};

type Row = {
  what: string;
  /** What one of several figures is called in a sentence, with its label; absent = as the row. */
  subject?: string;
  suite: string;
  /** The variant that is this gateway's. */
  own: string;
  /** Variants of others that are not called as they are. */
  variants?: Readonly<Record<string, string>>;
  figures: readonly Figure[];
  better: "less" | "more";
  digits: number;
  /** Written before each figure. */
  unit?: string;
  /** What a figure is divided by to be shown. */
  per?: number;
  /** What may be spent: only what is beyond it is compared in a sentence. */
  allowed?: number;
  /** Whether only gateways with a hard budget are compared in a sentence: a soft one refuses nobody too early, as it overspends. */
  isOfLedgers?: boolean;
};

const one = (name: string): readonly Figure[] => [{ label: "", name }];

const ROWS: readonly Row[] = [
  {
    what: "latency added to a call of 20 ms, 16 clients: p50 / p99 ms",
    subject: "ms added to a call of 20 ms, 16 clients",
    suite: "added",
    own: "chat",
    figures: [
      { label: "p50", name: "p50_ms@16", isAdded: true },
      { label: "p99", name: "p99_ms@16", isAdded: true },
    ],
    better: "less",
    digits: 1,
  },
  {
    what: "processor seconds per 1,000 such calls, 64 clients",
    suite: "added",
    own: "chat",
    figures: one("cpu_s@64"),
    better: "less",
    digits: 2,
  },
  {
    what: "most requests per second with a p99 of at most 50 ms",
    suite: "throughput",
    own: "chat",
    figures: one("rps@p99<=50"),
    better: "more",
    digits: 0,
  },
  {
    what: "1,000 calls of 200 ms, 512 at once: seconds until all answers",
    suite: "fan-out",
    own: "batch",
    figures: one("wall_ms@512"),
    better: "less",
    digits: 2,
    per: 1_000,
  },
  {
    what: "16 streams: chunks per second",
    suite: "stream",
    own: "native",
    figures: one("chunks_per_s@16"),
    better: "more",
    digits: 0,
  },
  {
    what: "16 streams: chunks per second where the gaps of a stream are at most 5 ms (p99), else 0",
    suite: "stream",
    own: "native",
    figures: one("flowing_chunks_per_s@16"),
    better: "more",
    digits: 0,
  },
  {
    what: "paced streams at once with events at most 10 ms late (p99)",
    suite: "paced",
    own: "native",
    figures: one("sustained"),
    better: "more",
    digits: 0,
  },
  {
    what: "resident memory after the load of the first row, MB",
    suite: "added",
    own: "chat",
    figures: one("loaded_mb"),
    better: "less",
    digits: 0,
  },
  {
    what: "a budget of $0.05 under 1,000 calls, 64 at once / all at once: the provider's bill",
    subject: "what a provider bills beyond a budget of $0.05",
    suite: "overshoot",
    own: "chat",
    figures: [
      { label: "64 at once", name: "bill_usd@64" },
      { label: "all at once", name: "bill_usd@1000" },
    ],
    better: "less",
    digits: 3,
    unit: "$",
    allowed: 0.05,
  },
  {
    what: "the same: calls refused although the money sufficed",
    subject: "calls refused although the money sufficed",
    suite: "overshoot",
    own: "chat",
    figures: [
      { label: "64 at once", name: "short@64" },
      { label: "all at once", name: "short@1000" },
    ],
    better: "less",
    digits: 0,
    isOfLedgers: true,
  },
  {
    what: "whole calls per second on an instant upstream, 64 at once, each reserved and settled durably",
    suite: "ledger",
    own: "chat",
    figures: one("per_s@64"),
    better: "more",
    digits: 0,
    isOfLedgers: true,
  },
  {
    what: "600 calls on a key with 100 calls a second: 429s per answered call",
    suite: "rate-limit",
    own: "batch",
    figures: one("wasted"),
    better: "less",
    digits: 2,
  },
  {
    what: "400 questions on one document: the bill ÷ the least possible",
    suite: "document",
    own: "fanout",
    figures: one("bill_ratio"),
    better: "less",
    digits: 2,
  },
  {
    what: "1,000 calls run again / again after a restart: calls paid again",
    subject: "of 1,000 calls that run again, calls paid again",
    suite: "rerun",
    own: "fanout",
    variants: { litellm: "litellm-disk" },
    figures: [
      { label: "without a restart", name: "again" },
      { label: "after a restart", name: "restarted" },
    ],
    better: "less",
    digits: 0,
  },
];

/** The command that measures a suite. */
export function commandOf(suite: string): string {
  return `npm run bench -- --peers ${suite}`;
}

function valueOf(data: ResultFile, { suite, per = 1 }: Row, variant: string, { name, isAdded }: Figure): number {
  const beyond = isAdded === true ? medianIn(data, suite, "direct", name) : 0;
  return (medianIn(data, suite, variant, name) - beyond) / per;
}

function textOf({ digits, unit = "" }: Row, value: number): string {
  return `${unit}${grouped(value.toFixed(digits))}`;
}

/** The table as Markdown, without a line break at its end. */
export function comparisonTable(data: ResultFile): string {
  const shown = (row: Row, variant: string): string => {
    const values = row.figures.map((figure) => valueOf(data, row, variant, figure));
    if (values.every(Number.isNaN)) return hasFailed(data, row.suite, variant) ? "failed" : "not measured";
    return values.map((value) => (Number.isNaN(value) ? "–" : textOf(row, value))).join(" / ");
  };
  // A row that this gateway has no figure for compares nothing.
  const isMeasured = (row: Row) => row.figures.some((figure) => !Number.isNaN(valueOf(data, row, row.own, figure)));
  const rows = ROWS.filter(isMeasured).map((row) => {
    const others = data.gateways.map(({ variant }) => row.variants?.[variant] ?? variant);
    const cells = [row.own, ...others].map((variant) => shown(row, variant));
    return `| ${row.what} | ${cells.join(" | ")} | \`${row.suite}\` |`;
  });
  const titles = ["", "fanout", ...data.gateways.map(({ title }) => title), "suite"];
  const bars = titles.map((_, at) => (at === 0 || at === titles.length - 1 ? "---" : "---:"));
  return [`| ${titles.join(" | ")} |`.replace("|  |", "| |"), `|${bars.join("|")}|`, ...rows].join("\n");
}

function hasFailed(data: ResultFile, suite: string, variant: string): boolean {
  const rounds = data.suites.find(({ name }) => name === suite)?.rounds ?? [];
  return rounds.some((round) => round.variant === variant && round.failed !== undefined);
}

/** Share by which two figures may differ and still count as level: medians of few rounds differ by as much. */
const LEVEL_SHARE = 0.05;

export type Standing = "ahead" | "level" | "behind";

/** Where a figure of this gateway is beside another's. */
export function standingOf(own: number, other: number, better: "less" | "more"): Standing {
  if (Math.abs(own - other) <= LEVEL_SHARE * Math.max(Math.abs(own), Math.abs(other))) return "level";
  return own < other === (better === "less") ? "ahead" : "behind";
}

const STANDINGS: readonly (readonly [Standing, string])[] = [
  ["ahead", "ahead of"],
  ["level", "level with"],
  ["behind", "behind"],
];

/** One line of Markdown for each figure that this gateway and another one have: whom it is ahead of, and behind whom. */
export function standings(data: ResultFile): string[] {
  return ROWS.flatMap((row) => row.figures.flatMap((figure) => standingsIn(data, row, figure)));
}

function standingsIn(data: ResultFile, row: Row, figure: Figure): string[] {
  const compared = (variant: string): number => {
    const value = valueOf(data, row, variant, figure);
    return row.allowed === undefined ? value : Math.max(0, value - row.allowed);
  };
  const own = compared(row.own);
  const others = data.gateways
    .filter(({ budget }) => row.isOfLedgers !== true || budget === "hard")
    .map(({ variant, title }) => ({ title, value: compared(row.variants?.[variant] ?? variant) }))
    .filter(({ value }) => !Number.isNaN(value))
    .toSorted((a, b) => (row.better === "less" ? a.value - b.value : b.value - a.value));
  if (Number.isNaN(own) || others.length === 0) return [];
  const groups = STANDINGS.flatMap(([standing, words]) => {
    const found = others.filter(({ value }) => standingOf(own, value, row.better) === standing);
    const names = found.map(({ title, value }) => `${title} (${textOf(row, value)})`);
    return names.length === 0 ? [] : [`${words} ${names.join(", ")}`];
  });
  const label = figure.label === "" ? "" : `, ${figure.label}`;
  const subject = `${row.subject ?? row.what}${label}`;
  return [`**${subject}** (${row.better} is better): fanout has ${textOf(row, own)}; ${groups.join("; ")}.`];
}

/** Thousands with commas. */
function grouped(digits: string): string {
  return digits.replace(/^-?\d+/, (whole) => whole.replaceAll(/\B(?=(\d{3})+$)/g, ","));
}
