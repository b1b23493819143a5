/** A run's log as its readers get it, and what must be true of every log. */
import { expect } from "vitest";
import { z } from "zod";
import { asOperator, type TestRun } from "./objects-run.ts";

const amounts = z.object({
  usd: z.number(),
  calls: z.number().optional(),
  prompt_tokens: z.number(),
  completion_tokens: z.number(),
  new_tokens: z.number(),
});

/** A line of a run's log. */
export const logLine = z.looseObject({
  seq: z.number(),
  ts: z.string(),
  run_id: z.string(),
  parallel_group_id: z.string().nullable(),
  event_type: z.string(),
  index: z.number().nullable().optional(),
  call_id: z.string().nullable().optional(),
  attempt: z.number().optional(),
  count: z.number().optional(),
  status: z.string().optional(),
  charged: amounts.optional(),
  spent: z.union([amounts, z.number(), z.null()]).optional(),
});
export type LogLine = z.infer<typeof logLine>;

/** The lines of a log's text, one JSON object each. */
export function linesOf(text: string): LogLine[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => logLine.parse(JSON.parse(line)));
}

/** A run's log from its begin, or after an event. */
export async function logOf(run: TestRun, after = 0): Promise<LogLine[]> {
  const response = await asOperator("GET", `/runs/${run.id}/log?after=${after}`);
  expect(response.status).toBe(200);
  return linesOf(new TextDecoder().decode(await response.arrayBuffer()));
}

/** Events of one type. */
export function ofType(lines: readonly LogLine[], type: string): LogLine[] {
  return lines.filter(({ event_type }) => event_type === type);
}

/** The numbers count up from the one after `after`: nothing is missing, nothing comes twice. */
export function expectGapless(lines: readonly LogLine[], after = 0): void {
  expect(lines.map(({ seq }) => seq)).toEqual(lines.map((_, place) => after + 1 + place));
}

/**
 * The log of a run in which nothing is in flight tells each thing once: every attempt's start and end, every slot's end,
 * every group's. What the attempts were charged, and child runs have spent, is what the run has spent: `spentUsd`.
 */
export function expectLoggedOnce(lines: readonly LogLine[], spentUsd: number): void {
  expectGapless(lines);
  const attempts = (type: string) => ofType(lines, type).map((line) => `${nameOf(line)}.${line.attempt}`);
  expect(attempts("attempt_ended").toSorted()).toEqual(attempts("attempt_started").toSorted());
  expectDistinct(attempts("attempt_started"));
  expectDistinct(ofType(lines, "slot_completed").map(nameOf));
  for (const started of ofType(lines, "group_started")) {
    const own = lines.filter(({ parallel_group_id }) => parallel_group_id === started.parallel_group_id);
    const told = ofType(own, "slot_completed").length;
    const atOnce = ofType(own, "slots_cancelled").reduce((sum, { count = 0 }) => sum + count, 0);
    // The first of single calls may have ended before the second announced their group.
    const early = ofType(lines, "slot_completed").some(
      ({ parallel_group_id, seq }) => parallel_group_id === null && seq < started.seq,
    );
    const ended = Math.max(...ofType(own, "group_completed").map(({ count = 0 }) => count));
    const shown = [told + atOnce, ...(early ? [told + atOnce + 1] : [])];
    expect(shown, started.parallel_group_id ?? "").toContain(ended);
    expect(ofType(own, "group_started").length).toBe(1);
    expect(ofType(own, "group_completed").length).toBe(1);
  }
  const charges = ofType(lines, "attempt_ended").map(({ charged }) => charged?.usd ?? 0);
  const children = ofType(lines, "child_closed").map(({ spent }) =>
    typeof spent === "object" ? (spent?.usd ?? 0) : 0,
  );
  expect([...charges, ...children].reduce((sum, usd) => sum + usd, 0)).toBeCloseTo(spentUsd, 9);
}

/** What an event is about: a place in its group, or a single call. */
function nameOf({ parallel_group_id: group, index, call_id: callId }: LogLine): string {
  return callId ?? `${group}/${index}`;
}

function expectDistinct(names: readonly string[]): void {
  expect(new Set(names).size).toBe(names.length);
}
