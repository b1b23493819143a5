/**
 * A group as a Markdown report: what each agent did, where its output is, what failed and what to do about it, and how
 * long all of it took. What models wrote is shown in a table cell: one line, nothing that Markdown or HTML would act on.
 */
import type { GroupView, SlotView } from "../../objects/methods/groups.ts";
import { usdOf } from "../../run/money/money.ts";
import { dollars, type WireError } from "../../errors.ts";
import { ANSWER_NOTES_CHARS_MAX } from "../../limits.ts";
import { TIER_NAMES } from "../../run/answers/tiers.ts";
import { outcomeOf } from "./outcome.ts";
import {
  actionFor,
  agentOf,
  cutTo,
  failedTiers,
  FINDING_CHARS,
  impactOf,
  locationOf,
  statusOf,
} from "./report-facts.ts";
import { endIndexOf, slotPages } from "./slot-pages.ts";
import { slotError } from "./slot.ts";

/** The report's content type; a line of nothing keeps the connection alive before the text begins. */
export const MARKDOWN = { contentType: "text/markdown; charset=utf-8", keepAlive: "\n" };

type Source = { group: GroupView; slotsFrom: (index: number) => Promise<SlotView[]> };

/** Yields the report, piece by piece. The slots are read once more for the failures if those are too long to keep. */
export async function* reportText({ group, slotsFrom }: Source): AsyncGenerator<string> {
  const tiers = failedTiers(group);
  let failures: string[] | null = [];
  let failureChars = 0;
  yield `# Group ${group.id}: ${group.status}\n\n`;
  yield "| Agent | Status | Output Location | Key Findings |\n| --- | --- | --- | --- |\n";
  for await (const slots of slotPages({ count: endIndexOf(group), slotsFrom })) {
    yield slots.map((slot) => agentLine(group.id, slot)).join("");
    const text = failureLines(slots, tiers);
    failureChars += text.length;
    if (failureChars <= ANSWER_NOTES_CHARS_MAX) failures?.push(text);
    else failures = null;
  }
  if (failureChars > 0) {
    const [name, rule] = tiers === null ? ["", ""] : [" Tier |", " --- |"];
    yield `\n## Failed\n\n| Agent |${name} Error | Impact | Action |\n| --- |${rule} --- | --- | --- |\n`;
    if (failures !== null) yield failures.join("");
    else for await (const slots of slotPages({ count: endIndexOf(group), slotsFrom })) yield failureLines(slots, tiers);
  }
  yield metricsText(group);
}

type FailedTiers = ReturnType<typeof failedTiers>;

/** The lines of the slots that failed. */
function failureLines(slots: readonly SlotView[], tiers: FailedTiers): string {
  return slots
    .map((slot) => {
      const error = slotError(slot);
      return error === null ? "" : failureLine(slot, error, tiers);
    })
    .join("");
}

function agentLine(groupId: string, slot: SlotView): string {
  const findings = slot.state === "completed" ? cell(slot.text ?? "") : "-";
  return `| ${cell(agentOf(slot))} | ${statusOf(slot)} | ${locationOf(groupId, slot) ?? "-"} | ${findings} |
`;
}

function failureLine(slot: SlotView, error: WireError, tiers: FailedTiers): string {
  const { code, message } = error;
  const tier = tiers?.get(slot.index);
  const named = tiers === null ? "" : ` ${tier === undefined ? "-" : TIER_NAMES[tier]} |`;
  const action = actionFor(error, { tier, retryRecommended: outcomeOf(slot).retry_recommended === true });
  return `| ${cell(agentOf(slot))} |${named} ${cell(`${code}: ${message}`)} | ${impactOf(slot)} | ${action} |
`;
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
    ["Cost", dollars(usdOf(usage.costNanoUsd))],
  ];
  const lines = rows.map(([name, value]) => `| ${name} | ${value} |\n`).join("");
  return `\n## Metrics\n\n| Metric | Value |\n| --- | --- |\n${lines}`;
}

/** Text of a stranger as a table cell. */
function cell(text: string): string {
  const line = text.replace(/[\p{Cc}\p{Cf}\u2028\u2029\s]+/gu, " ").trim();
  return cutTo(line, FINDING_CHARS).replace(/[\\`*_{}[\]()#+!|~<>&:@]|(?<=www)\./gi, (mark) =>
    mark === "<" ? "&lt;" : mark === "&" ? "&amp;" : `\\${mark}`,
  );
}
