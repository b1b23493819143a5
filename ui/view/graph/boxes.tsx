/** Draws the boxes of a graph. Arrow keys move between them; one of them is chosen, and its tasks are listed below. */
import { useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import { countText, durationText } from "../../model/format.ts";
import type { Box, Layout } from "../../model/graph/layout.ts";
import { STATE_TEXT, type GraphView, type TaskState, type TaskView } from "../../model/graph/task-states.ts";
import { ChosenTasks } from "./chosen-tasks.tsx";

const BOX = { width: 148, height: 40, gapX: 44, gapY: 12 } as const;
const PAD = 6;
const NAME_CHARS = 19;
const FACTS_CHARS = 25;

/** A box as it is drawn: what its tasks are together. */
type Drawn = { box: Box; x: number; y: number; state: TaskState; isCritical: boolean; text: string };

export function Boxes({ layout, view }: { layout: Layout; view: GraphView }) {
  const chosen = useSignal<number | null>(null);
  const picture = useRef<SVGSVGElement>(null);
  const critical = useMemo(() => new Set(view.critical), [view]);
  const path = useMemo(() => pathLines(layout, view), [layout, view]);
  const drawn = layout.boxes.map((box) => drawnOf(box, view, critical));
  const focus = chosen.value ?? 0;
  const width = layout.columns * (BOX.width + BOX.gapX) - BOX.gapX + 2 * PAD;
  const height = layout.rows * (BOX.height + BOX.gapY) - BOX.gapY + 2 * PAD;
  const move = (event: KeyboardEvent, place: number): void => {
    const to = neighbourOf(layout.boxes, place, event.key);
    if (to === null) return;
    event.preventDefault();
    chosen.value = to;
    picture.current?.querySelectorAll<SVGGElement>("[role=button]")[to]?.focus();
  };
  const tasks = chosen.value === null ? [] : (drawn[chosen.value]?.box.tasks ?? []);
  return (
    <>
      <div class="scroll graph">
        <svg ref={picture} width={width} height={height} role="group" aria-label="Tasks; arrow keys move between them">
          {layout.lines.map(({ from, to }) => (
            <path
              key={`${from} ${to}`}
              class={path.has(`${from} ${to}`) ? "edge critical" : "edge"}
              d={lineBetween(drawn[from], drawn[to])}
            />
          ))}
          {drawn.map(({ box, x, y, state, isCritical, text }, place) => (
            <g
              key={place}
              class={`box ${state}${isCritical ? " critical" : ""}`}
              transform={`translate(${x} ${y})`}
              role="button"
              aria-pressed={chosen.value === place}
              tabIndex={place === focus ? 0 : -1}
              onClick={() => void (chosen.value = place)}
              onFocus={() => void (chosen.value = place)}
              onKeyDown={(event) => move(event, place)}
            >
              <title>{`${box.name}: ${text}${isCritical ? ", on the critical path" : ""}`}</title>
              <rect width={BOX.width} height={BOX.height} rx={4} />
              <rect class="state" width={5} height={BOX.height} rx={2} />
              <text x={12} y={16}>
                {cut(box.name, NAME_CHARS)}
              </text>
              <text class="facts" x={12} y={32}>
                {cut(text, FACTS_CHARS)}
              </text>
            </g>
          ))}
        </svg>
      </div>
      <ChosenTasks tasks={tasks.flatMap((position) => view.tasks[position] ?? [])} />
    </>
  );
}

function drawnOf(box: Box, { tasks }: GraphView, critical: ReadonlySet<number>): Drawn {
  const views = box.tasks.flatMap((position) => tasks[position] ?? []);
  const state = stateOf(views);
  const place = { x: PAD + box.column * (BOX.width + BOX.gapX), y: PAD + box.row * (BOX.height + BOX.gapY) };
  const isCritical = box.tasks.some((position) => critical.has(position));
  const [only] = views;
  const text = views.length === 1 && only !== undefined ? taskText(only) : tasksText(views);
  return { box, ...place, state, isCritical, text };
}

/** `completed, 2.1 s`; with several calls how many of them have ended. */
function taskText({ state, begun, ended, durationMs }: TaskView): string {
  const calls = begun > 1 ? `${countText(ended)}/${countText(begun)} ` : "";
  const took = durationMs === null ? "" : `, ${durationText(durationMs)}`;
  return `${calls}${STATE_TEXT[state]}${took}`;
}

function tasksText(views: readonly TaskView[]): string {
  const completed = views.filter(({ state }) => state === "completed").length;
  const failed = views.filter(({ state }) => state === "failed" || state === "partial").length;
  const failures = failed === 0 ? "" : `, ${countText(failed)} failed`;
  return `${countText(completed)} of ${countText(views.length)} tasks${failures}`;
}

/** What tasks that share a box are together: the state that a reader must not miss. */
function stateOf(views: readonly TaskView[]): TaskState {
  const has = (state: TaskState): boolean => views.some((view) => view.state === state);
  if (has("failed") && !has("completed") && !has("running") && !has("idle")) return "failed";
  if (has("failed") || has("partial")) return "partial";
  const isMoving = has("running") || (has("idle") && has("completed"));
  if (isMoving) return "running";
  return (["idle", "cancelled", "skipped"] as const).find(has) ?? "completed";
}

/** The lines of the critical path, as `from to`. */
function pathLines({ boxes }: Layout, { critical }: GraphView): ReadonlySet<string> {
  const boxOf = new Map<number, number>();
  boxes.forEach(({ tasks }, place) => tasks.forEach((position) => boxOf.set(position, place)));
  return new Set(critical.slice(1).map((to, at) => `${boxOf.get(critical[at] ?? 0)} ${boxOf.get(to)}`));
}

function lineBetween(from: Drawn | undefined, to: Drawn | undefined): string {
  if (from === undefined || to === undefined) return "";
  const [x1, y1, x2, y2] = [from.x + BOX.width, from.y + BOX.height / 2, to.x, to.y + BOX.height / 2];
  return `M${x1} ${y1} C${x1 + BOX.gapX / 2} ${y1} ${x2 - BOX.gapX / 2} ${y2} ${x2} ${y2}`;
}

/** The nearest box in the direction of an arrow key; null if the key is another, or there is none. */
function neighbourOf(boxes: readonly Box[], place: number, key: string): number | null {
  const at = boxes[place];
  const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key];
  const [columns = 0, rows = 0] = by ?? [];
  if (at === undefined || by === undefined) return null;
  let best: number | null = null;
  let nearest = Infinity;
  boxes.forEach(({ column, row }, other) => {
    const isThere = columns === 0 ? column === at.column && (row - at.row) * rows > 0 : column === at.column + columns;
    const distance = Math.abs(row - at.row);
    if (!isThere || distance >= nearest) return;
    best = other;
    nearest = distance;
  });
  return best;
}

function cut(text: string, chars: number): string {
  return text.length > chars ? `${text.slice(0, chars - 1)}…` : text;
}
