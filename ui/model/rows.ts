/** The lines of the timeline: each group with its calls below it, single calls at the end, in the order of their beginning. */
import type { Call } from "./call.ts";
import type { GroupState, RunState } from "./run-state.ts";

export type Row = { kind: "group"; group: GroupState } | { kind: "call"; call: Call };
export type Shown = "all" | "failed" | "running" | "retried" | "replayed";

export function rowsOf(state: RunState, shown: Shown): Row[] {
  const byGroup = new Map<string | null, Call[]>();
  for (const call of state.calls) {
    if (!isShown(call, shown)) continue;
    const known = call.group === null || !state.groups.has(call.group) ? null : call.group;
    const calls = byGroup.get(known);
    if (calls === undefined) byGroup.set(known, [call]);
    else calls.push(call);
  }
  const rows: Row[] = [];
  for (const group of state.groups.values()) {
    const calls = byGroup.get(group.id);
    if (calls === undefined && shown !== "all") continue;
    rows.push({ kind: "group", group });
    for (const call of calls ?? []) rows.push({ kind: "call", call });
  }
  for (const call of byGroup.get(null) ?? []) rows.push({ kind: "call", call });
  return rows;
}

/** Whether two lines show the same thing: lines are made anew whenever the log grows. */
export function isSameRow(one: Row, other: Row | null): boolean {
  if (one.kind === "call") return other?.kind === "call" && other.call === one.call;
  return other?.kind === "group" && other.group === one.group;
}

function isShown(call: Call, shown: Shown): boolean {
  switch (shown) {
    case "all":
      return true;
    case "failed":
      return call.state === "failed";
    case "running":
      return call.endMs === null;
    case "replayed":
      return call.replayed;
    case "retried":
      return call.attempts.length > 1;
  }
}
