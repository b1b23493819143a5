/** What a run of the bench measured, as it is written to bench/results and, for the page, to docs/benchmarks.json. */
import { z } from "zod";
import { median } from "../stats.ts";

const round = z.object({
  round: z.int(),
  variant: z.string(),
  at: z.number(),
  figures: z.record(z.string(), z.number().nullable()),
  /** Why there are no figures; absent = there are. */
  failed: z.string().optional(),
});

const suite = z.object({
  name: z.string(),
  title: z.string(),
  about: z.string(),
  table: z.array(z.record(z.string(), z.string())),
  rounds: z.array(round),
});

/** A gateway of others that took part: what its variant is called in the rounds, and what people read of it. */
const gateway = z.object({
  variant: z.string(),
  title: z.string(),
  version: z.string(),
  /** What it does about a budget: nothing, compares it with what was spent before a call, or reserves before a call. */
  budget: z.enum(["none", "soft", "hard"]),
  about: z.string(),
});

export const resultFile = z.object({
  at: z.iso.datetime(),
  machine: z.record(z.string(), z.union([z.string(), z.number()])),
  /** Versions of what took part; gateways from PyPI are absent if they were not requested. */
  versions: z.record(z.string(), z.string()),
  gateways: z.array(gateway),
  quick: z.boolean(),
  rounds: z.int(),
  suites: z.array(suite),
});

export type ResultFile = z.infer<typeof resultFile>;

/** The median of a figure over the rounds that did not fail; NaN if it was not measured. */
export function medianIn(data: ResultFile, name: string, variant: string, figure: string): number {
  const rounds = data.suites.find((each) => each.name === name)?.rounds ?? [];
  const measured = rounds.filter((each) => each.variant === variant && each.failed === undefined);
  return median(measured.map((each) => each.figures[figure] ?? Number.NaN));
}

/** Variants that failed in some round, each with its first reason. */
export function failuresOf(rounds: readonly { variant: string; failed?: string | undefined }[]): Map<string, string> {
  const failed = rounds.flatMap((round) =>
    round.failed === undefined ? [] : [[round.variant, round.failed] as const],
  );
  return new Map(failed.toReversed());
}

const SIGNIFICANT_DIGITS = 5;

/** The file as text, a line for each round. */
export function textOf(data: ResultFile): string {
  const short = (_: string, value: unknown): unknown =>
    typeof value === "number" ? Number(value.toPrecision(SIGNIFICANT_DIGITS)) : value;
  const { suites, ...head } = data;
  const lines = suites.map(({ rounds, ...about }) => {
    const rows = rounds.map((each) => `  ${JSON.stringify(each, short)}`).join(",\n");
    return `${JSON.stringify(about).slice(0, -1)},"rounds":[\n${rows}\n]}`;
  });
  return `${JSON.stringify(head).slice(0, -1)},"suites":[\n${lines.join(",\n")}\n]}\n`;
}
