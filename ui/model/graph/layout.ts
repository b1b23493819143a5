/** Where the boxes of a graph are. A large graph has no box for each task: tasks of adjacent levels share one. */
import { levelsOf } from "../../../src/run/graph/critical-path.ts";
import { linksOf, neighboursOf, orderOf } from "../../../src/run/graph/order.ts";
import type { Outline, Task } from "./outline.ts";

/** Boxes, columns and rows that a reader can still look over, and a browser draws at once. */
const BOXES_MAX = 150;
const COLUMNS_MAX = 40;
const ROWS_MAX = 24;
const LINES_MAX = 1_500;

/** `name`: the id of its task, or what its tasks have in common. */
export type Box = { name: string; column: number; row: number; tasks: readonly number[] };
/** From one box to another, by their places in the list. */
export type Line = { from: number; to: number };
export type Layout = { boxes: readonly Box[]; lines: readonly Line[]; columns: number; rows: number; isWhole: boolean };

/** Null if the tasks wait for each other in a circle, which no accepted graph has. */
export function layoutOf({ tasks }: Outline): Layout | null {
  const links = linksOf(tasks);
  const ordered = orderOf(links);
  if (!ordered.ok) return null;
  const levels = levelsOf(links, ordered.order);
  const whole = placed(
    tasks.map((task, position) => ({ name: task.id, column: levels[position] ?? 1, tasks: [position] })),
  );
  const fits = tasks.length <= BOXES_MAX && whole.columns <= COLUMNS_MAX && whole.rows <= ROWS_MAX;
  const { boxes, columns, rows } = fits ? whole : placed(bands(tasks, levels));
  const boxOf = new Uint32Array(tasks.length);
  boxes.forEach((box, place) => box.tasks.forEach((position) => void (boxOf[position] = place)));
  const lines = new Map<string, Line>();
  tasks.forEach((_, position) => {
    const to = boxOf[position] ?? 0;
    for (const before of neighboursOf(links.predecessors, position)) {
      const from = boxOf[before] ?? 0;
      if (from !== to && lines.size < LINES_MAX) lines.set(`${from} ${to}`, { from, to });
    }
  });
  return { boxes, lines: [...lines.values()], columns, rows, isWhole: fits };
}

type Unplaced = Omit<Box, "row">;

/** Boxes by column, each in the next free row. */
function placed(unplaced: readonly Unplaced[]): { boxes: Box[]; columns: number; rows: number } {
  const used = new Map<number, number>();
  let [columns, rows] = [0, 0];
  const boxes = unplaced.map((box) => {
    const row = used.get(box.column) ?? 0;
    used.set(box.column, row + 1);
    columns = Math.max(columns, box.column);
    rows = Math.max(rows, row + 1);
    return { ...box, column: box.column - 1, row };
  });
  return { boxes, columns, rows };
}

/** One box for the tasks of a band of levels and of one tier and phase; or of the band alone, if that are too many. */
function bands(tasks: readonly Task[], levels: Uint32Array): Unplaced[] {
  const highest = levels.reduce((max, level) => Math.max(max, level), 1);
  const height = Math.ceil(highest / COLUMNS_MAX);
  const bandOf = (position: number): number => Math.floor(((levels[position] ?? 1) - 1) / height) + 1;
  const rowsMax = Math.min(ROWS_MAX, Math.floor(BOXES_MAX / Math.ceil(highest / height)));
  const kindsOf = grouped(tasks, (task, position) => `${bandOf(position)} ${kindOf(task)}`);
  const perBand = new Map<number, number>();
  for (const [first = 0] of kindsOf.values()) perBand.set(bandOf(first), (perBand.get(bandOf(first)) ?? 0) + 1);
  const isTooMany = [...perBand.values()].some((kinds) => kinds > Math.max(1, rowsMax));
  const groups = isTooMany ? grouped(tasks, (_, position) => `${bandOf(position)}`) : kindsOf;
  return [...groups.values()].map((positions) => {
    const column = bandOf(positions[0] ?? 0);
    const from = (column - 1) * height + 1;
    const to = Math.min(highest, column * height);
    const level = from === to ? `level ${from}` : `levels ${from}–${to}`;
    const [only] = positions;
    const kind = isTooMany || only === undefined ? "" : kindOf(tasks[only]);
    const isOne = positions.length === 1 && only !== undefined;
    return {
      name: isOne ? (tasks[only]?.id ?? "") : kind === "" ? level : `${kind}, ${level}`,
      column,
      tasks: positions,
    };
  });
}

function grouped(tasks: readonly Task[], keyOf: (task: Task, position: number) => string): Map<string, number[]> {
  const groups = new Map<string, number[]>();
  tasks.forEach((task, position) => {
    const key = keyOf(task, position);
    const known = groups.get(key);
    if (known === undefined) groups.set(key, [position]);
    else known.push(position);
  });
  return groups;
}

function kindOf(task: Task | undefined): string {
  return [task?.tier, task?.phase].filter((part) => part != null && part !== "").join(" ");
}
