/** What a run of the bench measured, as it is written to bench/results and, for the page, to docs/benchmarks.json. */
import { z } from "zod";
import { median } from "../stats.ts";

const round = z.object({
  round: z.int(),
  variant: z.string(),
  at: z.number(),
  figures: z.record(z.string(), z.number().nullable()),
});

const suite = z.object({
  name: z.string(),
  title: z.string(),
  about: z.string(),
  table: z.array(z.record(z.string(), z.string())),
  rounds: z.array(round),
});

export const resultFile = z.object({
  at: z.iso.datetime(),
  machine: z.record(z.string(), z.union([z.string(), z.number()])),
  /** Versions of what took part; LiteLLM is absent if no peers were requested. */
  versions: z.record(z.string(), z.string()),
  quick: z.boolean(),
  rounds: z.int(),
  suites: z.array(suite),
});

export type ResultFile = z.infer<typeof resultFile>;

/** The median of a figure over the rounds; NaN if it was not measured. */
export function medianIn(data: ResultFile, name: string, variant: string, figure: string): number {
  const rounds = data.suites.find((each) => each.name === name)?.rounds ?? [];
  return median(rounds.filter((each) => each.variant === variant).map((each) => each.figures[figure] ?? Number.NaN));
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
