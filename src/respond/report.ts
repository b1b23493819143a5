/**
 * A group as a Markdown report: what each agent did, where its output is, what failed and what to do about it, and how
 * long all of it took. What models wrote is shown in a table cell: one line, nothing that Markdown or HTML would act on.
 */
import type { GroupView, SlotView } from "../run-api/groups.ts";
import { usdOf } from "../budget/money.ts";
import { isFinalState } from "../engine/slot.ts";
import type { WireError } from "../errors.ts";
import { ANSWER_NOTES_CHARS_MAX, RESULT_PAGES_AHEAD } from "../limits.ts";
import { readAhead } from "./read-ahead.ts";
import { slotError } from "./slot.ts";

/** The report's content type; a line of nothing keeps the connection alive before the text begins. */
export const MARKDOWN = { contentType: "text/markdown; charset=utf-8", keepAlive: "\n" };

/** Characters of an output that the table shows. */
const FINDING_CHARS = 160;

type Source = { group: GroupView; slotsFrom: (index: number) => Promise<SlotView[]> };

/** Yields the report, piece by piece. The slots are read once more for the failures if those are too long to keep. */
export async function* reportText({ group, slotsFrom }: Source): AsyncGenerator<string> {
  let failures: string[] | null = [];
  let failureChars = 0;
  yield `# Group ${group.id}: ${group.status}\n\n`;
  yield "| Agent | Status | Output Location | Key Findings |\n| --- | --- | --- | --- |\n";
  for await (const slots of readAhead(pagesOf(group.count, slotsFrom), RESULT_PAGES_AHEAD)) {
    yield slots.map((slot) => agentLine(group.id, slot)).join("");
    const text = failureLines(slots);
    failureChars += text.length;
    if (failureChars <= ANSWER_NOTES_CHARS_MAX) failures?.push(text);
    else failures = null;
  }
  if (failureChars > 0) {
    yield "\n## Failed\n\n| Agent | Error | Impact | Action |\n| --- | --- | --- | --- |\n";
    if (failures !== null) yield failures.join("");
    else
      for await (const slots of readAhead(pagesOf(group.count, slotsFrom), RESULT_PAGES_AHEAD))
        yield failureLines(slots);
  }
  yield metricsText(group);
}

async function* pagesOf(count: number, slotsFrom: Source["slotsFrom"]): AsyncGenerator<SlotView[]> {
  for (let from = 0; from < count;) {
    const slots = await slotsFrom(from);
    if (slots.length === 0) return;
    from += slots.length;
    yield slots;
  }
}

/** The lines of the slots that failed. */
function failureLines(slots: readonly SlotView[]): string {
  return slots
    .map((slot) => {
      const error = slotError(slot);
      return error === null ? "" : failureLine(slot, error);
    })
    .join("");
}

function agentLine(groupId: string, slot: SlotView): string {
  const completed = slot.state === "completed";
  const status = completed ? "COMPLETE" : isFinalState(slot.state) ? "FAILED" : slot.state.toUpperCase();
  const location = completed ? `/groups/${groupId}/results?after=${slot.index - 1}&limit=1` : "-";
  return `| ${agentOf(slot)} | ${status} | ${location} | ${completed ? cell(slot.text ?? "") : "-"} |\n`;
}

function failureLine(slot: SlotView, error: WireError): string {
  const impact = slot.attempts === 0 ? "did not run, cost nothing" : `no output after ${slot.attempts} attempt(s)`;
  return `| ${agentOf(slot)} | ${cell(`${error.code}: ${error.message}`)} | ${impact} | ${actionFor(error)} |\n`;
}

/** Retryable errors can be retried; a missing budget, key or permission needs a decision of the operator. */
function actionFor({ code, retryable }: WireError): "Retry" | "Escalate" | "Skip" {
  if (retryable) return "Retry";
  return ["budget_exhausted", "invalid_api_key", "model_not_allowed", "misconfigured"].includes(code)
    ? "Escalate"
    : "Skip";
}

function metricsText({ metrics, counts, count, usage }: GroupView): string {
  const rows: [string, string | number][] = [
    ["Agents", count],
    ["Completed", counts.completed],
    ["Wall clock", `${metrics.wall_ms} ms`],
    ["Sequential", `${metrics.sequential_ms} ms`],
    ["Speed-up", `${metrics.speedup}x`],
    ["Peak parallel", metrics.peak_parallel],
    ["Success rate", metrics.success_rate],
    ["Cost", `$${usdOf(usage.costNanoUsd)}`],
  ];
  const lines = rows.map(([name, value]) => `| ${name} | ${value} |\n`).join("");
  return `\n## Metrics\n\n| Metric | Value |\n| --- | --- |\n${lines}`;
}

function agentOf(slot: SlotView): string {
  return slot.id === null ? String(slot.index) : cell(slot.id);
}

/** Text of a stranger as a table cell. */
function cell(text: string): string {
  const line = text.replace(/[\p{Cc}\p{Cf}\u2028\u2029\s]+/gu, " ").trim();
  const cut = [...line.slice(0, 2 * FINDING_CHARS)].slice(0, FINDING_CHARS).join("");
  const shown = cut.length < line.length ? `${cut}…` : cut;
  return shown.replace(/[\\`*_{}[\]()#+!|~<>&:@]|(?<=www)\./gi, (mark) =>
    mark === "<" ? "&lt;" : mark === "&" ? "&amp;" : `\\${mark}`,
  );
}
