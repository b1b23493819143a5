/**
 * The live part of the screen: each open group with its calls, and a line for the run. It never has more lines than the terminal
 * has rows, nor a line longer than its columns: otherwise redrawing would leave remains on the screen.
 */
import type { Call } from "../../src/log/picture/call.ts";
import type { Tally } from "../../src/log/picture/group.ts";
import { activeText, bar, QUEUED_TEXT } from "./call-line.ts";
import { endedLine, labelOf } from "./history.ts";
import { cut } from "./text.ts";
import { usdText } from "../../ui/model/format.ts";
import { countText, plural } from "./units.ts";
import { type GroupView, queuedIn, total, type View } from "./view.ts";

/** Assumed duration of an attempt until one has been answered, ms. */
const TYPICAL_MS_DEFAULT = 5_000;
/** Rows for calls that just ended, as a share of the rows of a group that does not fit. */
const ENDED_ROWS_SHARE = 0.25;

export type Frame = {
  runId: string;
  columns: number;
  rows: number;
  nowMs: number;
  /** Whether the connection is up. */
  connected: boolean;
  /** How deep the run is in its tree, and at which step of its own; it is shown once a step is known. Absent = it is not shown. */
  where?: { depth: number; step: string | null };
};

/** Lines of the live part, at most `rows - 1`: the cursor needs the last row. */
export function render(view: View, frame: Frame): string[] {
  const rowsMax = Math.max(1, frame.rows - 1);
  const { depth = 0, step = null } = frame.where ?? {};
  const where = step === null ? [] : placeParts(depth, step);
  const lines = [...groupLines(view, frame, rowsMax - 1), runLine(view, frame, where)];
  return lines.map((line) => cut(line, frame.columns));
}

/** A run of a tree. `level`: how far it is indented; `depth` and `step`: how deep in its tree, and at which step of its own. */
export type TreeRun = {
  id: string;
  level: number;
  depth: number;
  step: string | null;
  view: View;
  connected: boolean;
};

/** Lines of the live part for a tree: each run in its place with its groups below, at most `rows - 1`. */
export function renderTree(runs: readonly TreeRun[], frame: Omit<Frame, "runId" | "connected" | "where">): string[] {
  const rowsMax = Math.max(1, frame.rows - 1);
  const shown = runs.length > rowsMax ? runs.slice(0, rowsMax - 1) : runs;
  const rest = runs.length > shown.length ? [`… ${plural(runs.length - shown.length, "more run")}`] : [];
  const wanted = shown.map(({ view }) => [...view.groups.values()].reduce((sum, group) => sum + rowsWanted(group), 0));
  const shares = shareRows(wanted, rowsMax - shown.length - rest.length);
  const blocks = shown.map(({ id: runId, level, depth, step, view, connected }, place) => {
    const own = { ...frame, runId, connected };
    const lines = [runLine(view, own, placeParts(depth, step)), ...groupLines(view, own, shares[place] ?? 0)];
    return lines.map((line) => `${"  ".repeat(level)}${line}`);
  });
  return [...blocks.flat(), ...rest].map((line) => cut(line, frame.columns));
}

/** `Depth 1 · Step 3/20`, as parts of a line. */
function placeParts(depth: number, step: string | null): string[] {
  return [`Depth ${depth}`, ...(step === null ? [] : [`Step ${step}`])];
}

function runLine(view: View, { runId, connected }: Frame, where: readonly string[] = []): string {
  const name = view.name === null ? "" : ` "${view.name}"`;
  const limit = view.limitUsd === null ? "" : ` of ${usdText(view.limitUsd)}`;
  const parts = [
    `${runId}${name}`,
    ...where,
    view.ended ?? "open",
    `${usdText(view.spentUsd)}${limit} spent`,
    `${countText(view.counts.running)} in flight`,
    ...talliesOf({ ...view.counts, skipped: view.skippedCalls }),
  ];
  if (!connected) parts.push("not connected");
  return parts.join(" · ");
}

function groupLines(view: View, frame: Frame, rowsMax: number): string[] {
  const groups = [...view.groups.values()];
  const shown = groups.length > rowsMax ? groups.slice(0, Math.max(0, rowsMax - 1)) : groups;
  const hidden = groups.length - shown.length;
  const rest = hidden > 0 && rowsMax > 0 ? [`… ${countText(hidden)} more groups`] : [];
  const { attempts, latencyMs } = view.answered;
  const typicalMs = attempts === 0 ? TYPICAL_MS_DEFAULT : Math.max(1, latencyMs / attempts);
  const shares = shareRows(shown.map(rowsWanted), rowsMax - rest.length);
  const blocks = shown.map((group, place) => {
    const calls = callLines(group, { rows: (shares[place] ?? 1) - 1, nowMs: frame.nowMs, typicalMs });
    return [groupLine(group), ...calls];
  });
  return [...blocks.flat(), ...rest];
}

/** Each group's rows: as many as it needs, or an equal share of the rows that remain. */
export function shareRows(wanted: readonly number[], rows: number): number[] {
  const shares = wanted.map(() => 0);
  let rowsLeft = rows;
  let groupsLeft = wanted.length;
  for (const [place, want] of [...wanted.entries()].toSorted(([, a], [, b]) => a - b)) {
    const share = Math.min(want, Math.floor(rowsLeft / groupsLeft));
    shares[place] = share;
    rowsLeft -= share;
    groupsLeft -= 1;
  }
  return shares;
}

function rowsWanted(group: GroupView): number {
  return 1 + (group.ofSingles ? group.open.size + group.ended.size : group.count);
}

function groupLine(group: GroupView): string {
  const ended = total(group.tally);
  const share = group.count === 0 ? 0 : ended / group.count;
  const running = group.open.size === 0 ? [] : [`${countText(group.open.size)} running`];
  const queued = queuedIn(group) === 0 ? [] : [`${countText(queuedIn(group))} queued`];
  const done = `${bar(share)} ${countText(ended)}/${countText(group.count)}`;
  return [`${group.id} ${done}`, ...running, ...queued, ...talliesOf(group.tally)].join(" · ");
}

/** "40 ok", "2 failed"; counts of zero are omitted. */
function talliesOf({ completed, failed, cancelled, skipped }: Tally): string[] {
  const counts: [number, string][] = [
    [completed, "ok"],
    [failed, "failed"],
    [cancelled, "cancelled"],
    [skipped, "skipped"],
  ];
  return counts.flatMap(([count, word]) => (count > 0 ? [`${countText(count)} ${word}`] : []));
}

type Space = { rows: number; nowMs: number; typicalMs: number };

function callLines(group: GroupView, space: Space): string[] {
  if (space.rows <= 0) return [];
  const active = (key: string, call: Call) =>
    `  ${labelOf(key, group)} ${activeText(call, space.nowMs, space.typicalMs)}`;
  if (rowsWanted(group) - 1 <= space.rows) return allLines(group, active);

  const rows = space.rows - 1;
  const running = [...group.open].toSorted(byIndex);
  const runningShown = running.slice(0, Math.max(rows - group.ended.size, Math.ceil(rows * (1 - ENDED_ROWS_SHARE))));
  const endedRows = rows - runningShown.length;
  const endedShown = endedRows > 0 ? [...group.ended].slice(-endedRows) : [];
  const shown: [string, string][] = [
    ...runningShown.map(([key, call]): [string, string] => [key, active(key, call)]),
    ...endedShown.map(([key, call]): [string, string] => [key, endedLine(call, group)]),
  ];
  const hidden = { ...group.tally };
  for (const [, { status }] of endedShown) hidden[status] -= 1;
  const runningHidden = running.length - runningShown.length;
  const words = [
    ...(queuedIn(group) > 0 ? [`${countText(queuedIn(group))} more queued`] : []),
    ...(runningHidden > 0 ? [`${countText(runningHidden)} more running`] : []),
    ...talliesOf(hidden),
  ];
  return [...shown.toSorted(byIndex).map(([, line]) => line), ...(words.length > 0 ? [`  … ${words.join(", ")}`] : [])];
}

/** Every call of a group that fits. */
function allLines(group: GroupView, active: (key: string, call: Call) => string): string[] {
  if (group.ofSingles) {
    return [
      ...[...group.ended.values()].map((call) => endedLine(call, group)),
      ...[...group.open].map(([key, call]) => active(key, call)),
    ];
  }
  const unknown = queuedIn(group) > 0 ? QUEUED_TEXT : `${bar(0)} ended without a call`;
  return Array.from({ length: group.count }, (_, index) => {
    const key = `#${index}`;
    const running = group.open.get(key);
    if (running !== undefined) return active(key, running);
    const ended = group.ended.get(key);
    if (ended !== undefined) return endedLine(ended, group);
    const why = group.skipped.get(key);
    return `  ${labelOf(key, group)} ${why === undefined ? unknown : `${bar(0)} skipped: ${why}`}`;
  });
}

function byIndex([a]: [string, unknown], [b]: [string, unknown]): number {
  return Number(a.slice(1)) - Number(b.slice(1)) || 0;
}
