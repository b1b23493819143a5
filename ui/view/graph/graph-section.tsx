/** The graphs of a run: one at a time, as boxes by level, with the chain of tasks that decides how long it takes. */
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { durationText } from "../../model/format.ts";
import { layoutOf } from "../../model/graph/layout.ts";
import { readOutline, slotNamesOf, type Outline } from "../../model/graph/outline.ts";
import { viewOf, type GraphView } from "../../model/graph/task-states.ts";
import type { GroupState, RunState } from "../../model/run-state.ts";
import { Boxes } from "./boxes.tsx";

/** Graphs to choose from: the last ones. */
const GRAPHS_MAX = 50;
const PATH_NAMES_MAX = 12;

/** `load`: the outline of a graph by its id; what it throws leaves the graph out. `named`: calls have got names. */
type Props = {
  state: RunState;
  nowMs: number;
  version: number;
  load: (id: string) => Promise<unknown>;
  named: () => void;
  /** Runs a graph that has ended once more, without what completed; absent = the run takes no more calls. */
  retry?: ((id: string) => void) | undefined;
};

export function Graphs(props: Props) {
  const { state } = props;
  const graphs = [...state.groups.values()].filter(({ tasks }) => tasks !== null).slice(-GRAPHS_MAX);
  const wanted = useSignal<string | null>(null);
  const chosen = graphs.find(({ id }) => id === wanted.value) ?? graphs.at(-1);
  if (chosen === undefined) return null;
  return (
    <section aria-label="Graph">
      <h2>Graph</h2>
      {graphs.length > 1 && (
        <select aria-label="Graph shown" onChange={(event) => void (wanted.value = event.currentTarget.value)}>
          {graphs.map(({ id, tasks, status }) => (
            <option value={id} selected={id === chosen.id}>
              {id}: {tasks} tasks, {status ?? "running"}
            </option>
          ))}
        </select>
      )}
      <Graph key={chosen.id} group={chosen} {...props} />
    </section>
  );
}

function Graph({ group, state, nowMs, load, named, retry }: Props & { group: GroupState }) {
  const outline = useSignal<Outline | null>(null);
  const hasEnded = group.endMs !== null;
  const known = outline.value?.slots ?? 0;
  const { calls, skipped } = group;
  // A changed graph has calls that an older outline does not know.
  const isOutdated = calls.some(({ index }) => index !== null && index >= known);
  useEffect(() => {
    let isGone = false;
    load(group.id)
      .then((json) => {
        const read = readOutline(json);
        if (isGone || read === null) return;
        outline.value = read;
        state.nameTasks(group.id, slotNamesOf(read));
        named();
      })
      // The timeline has its calls all the same.
      .catch(() => undefined);
    return () => void (isGone = true);
  }, [hasEnded, isOutdated]);
  const layout = useMemo(() => (outline.value === null ? null : layoutOf(outline.value)), [outline.value]);
  if (outline.value === null || layout === null) return null;
  const view = viewOf(outline.value, calls, { nowMs, hasEnded, skipped });
  return (
    <>
      <p class="dim">{pathText(view, hasEnded)}</p>
      <Boxes layout={layout} view={view} />
      {retry !== undefined && hasEnded && group.status !== "completed" && (
        <button type="button" onClick={() => retry(group.id)}>
          Retry what did not complete
        </button>
      )}
    </>
  );
}

/** The critical path in words; of a long one the beginning and the end. */
function pathText({ tasks, critical, criticalMs }: GraphView, hasEnded: boolean): string {
  if (critical.length === 0) return "";
  const ids = critical.map((position) => tasks[position]?.task.id ?? "");
  const half = PATH_NAMES_MAX / 2;
  const left = ids.length - PATH_NAMES_MAX;
  const shown = left > 0 ? [...ids.slice(0, half), `… ${left} more …`, ...ids.slice(-half)] : ids;
  return `Critical path, ${hasEnded ? "" : "about "}${durationText(criticalMs)}: ${shown.join(" → ")}`;
}
