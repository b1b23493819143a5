/** The calls of a run over time: one row per call, queue time apart from attempts. */
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { isSameRow, rowsOf, type Row, type Shown } from "../model/rows.ts";
import type { RunState } from "../model/run-state.ts";
import { colouring, type ColouredBy } from "./colours.ts";
import { Details, type Look } from "./details.tsx";
import { drawCurve, drawRows, ROW_PX, type Limit, type Span } from "./timeline-canvas.ts";

/** Browsers lay out no element that is much taller than this; a list of more rows is cut, and says so. */
const ROWS_MAX = 500_000;
const FILTERS: readonly [Shown, string][] = [
  ["all", "all calls"],
  ["running", "in flight or queued"],
  ["failed", "failed"],
  ["retried", "with retries"],
  ["replayed", "with recorded answers"],
];
const COLOURS: readonly [ColouredBy, string][] = [
  ["state", "coloured by state"],
  ["model", "by model"],
  ["cost", "by cost"],
];

export function Timeline({ state, nowMs, version, limits = [], look }: TimelineProps) {
  const shown = useSignal<Shown>("all");
  const zoom = useSignal<Span | null>(null);
  const hovered = useSignal<Row | null>(null);
  const colouredBy = useSignal<ColouredBy>("state");
  const { colourOf, legend } = colouring(colouredBy.value, state);
  const rows = useMemo(() => rowsOf(state, shown.value).slice(0, ROWS_MAX), [version, shown.value]);
  const list = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const curve = useRef<HTMLCanvasElement>(null);
  const whole: Span = { fromMs: state.startMs ?? nowMs, toMs: Math.max(nowMs, (state.startMs ?? nowMs) + 1) };
  const span = zoom.value ?? whole;
  const drawList = (): void => {
    const topPx = list.current?.scrollTop ?? 0;
    const drawing = { span, topPx, nowMs, hovered: hovered.value, colourOf };
    if (canvas.current !== null) drawRows(canvas.current, rows, drawing);
  };
  const draw = (): void => {
    drawList();
    if (curve.current !== null) drawCurve(curve.current, state.inFlight, { span, limits, phases: state.phases });
  };
  // Scrolling changes no other part of the page. One frame draws at most once.
  const due = useRef(0);
  const scrolled = (): void => {
    cancelAnimationFrame(due.current);
    due.current = requestAnimationFrame(drawList);
  };
  useEffect(() => {
    const frame = requestAnimationFrame(draw);
    return () => cancelAnimationFrame(frame);
  });
  useEffect(() => {
    addEventListener("resize", draw);
    return () => removeEventListener("resize", draw);
  });
  if (state.calls.length === 0) return null;
  const rowAt = (event: MouseEvent): Row | null => {
    const box = list.current;
    if (box === null) return null;
    return rows[Math.floor((event.clientY - box.getBoundingClientRect().top + box.scrollTop) / ROW_PX)] ?? null;
  };
  const move = (event: KeyboardEvent): void => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const box = list.current;
    if (by === undefined || box === null) return;
    event.preventDefault();
    const at =
      hovered.value === null
        ? Math.ceil(box.scrollTop / ROW_PX) - 1
        : rows.findIndex((row) => isSameRow(row, hovered.value));
    const to = Math.max(0, Math.min(rows.length - 1, at + by));
    hovered.value = rows[to] ?? null;
    const [top, bottom] = [to * ROW_PX, (to + 1) * ROW_PX];
    if (top < box.scrollTop) box.scrollTop = top;
    if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight;
  };
  return (
    <section aria-label="Timeline">
      <h2>Timeline</h2>
      <div class="tools">
        <select
          aria-label="Calls shown"
          onChange={(event) => {
            const found = FILTERS.find(([name]) => name === event.currentTarget.value);
            if (found !== undefined) shown.value = found[0];
          }}
        >
          {FILTERS.map(([name, label]) => (
            <option value={name}>{label}</option>
          ))}
        </select>
        <select
          aria-label="Colour"
          onChange={(event) => {
            const found = COLOURS.find(([name]) => name === event.currentTarget.value);
            if (found !== undefined) colouredBy.value = found[0];
          }}
        >
          {COLOURS.map(([name, label]) => (
            <option value={name}>{label}</option>
          ))}
        </select>
        <button type="button" aria-label="Zoom in" onClick={() => void (zoom.value = scaled(span, 0.5))}>
          +
        </button>
        <button type="button" aria-label="Zoom out" onClick={() => void (zoom.value = within(scaled(span, 2), whole))}>
          −
        </button>
        <button type="button" aria-label="Earlier" onClick={() => void (zoom.value = moved(span, -0.25))}>
          ←
        </button>
        <button type="button" aria-label="Later" onClick={() => void (zoom.value = moved(span, 0.25))}>
          →
        </button>
        <button type="button" onClick={() => void (zoom.value = null)}>
          Whole run
        </button>
      </div>
      {legend.length > 0 && (
        <ul class="legend" aria-label="Colours">
          {legend.map(({ colour, text }) => (
            <li key={text}>
              <i class="mark" style={{ background: colour }} />
              {text}
            </li>
          ))}
        </ul>
      )}
      <canvas class="curve" ref={curve} role="img" aria-label="Calls in flight over time" />
      <div
        class="rows"
        ref={list}
        tabIndex={0}
        role="group"
        aria-label={`${rows.length} rows; arrow keys choose one. Calls that failed are also listed under Failures`}
        onScroll={scrolled}
        onKeyDown={(event) => move(event)}
        onMouseMove={(event) => void (hovered.value = rowAt(event))}
        onMouseLeave={() => void (hovered.value = null)}
      >
        <canvas ref={canvas} aria-hidden="true" />
        <div style={{ height: `${rows.length * ROW_PX}px` }} />
      </div>
      <Details row={hovered.value} nowMs={nowMs} look={look} />
    </section>
  );
}

/** `limits`: how many calls may be in flight; `look`: a call of a group with the beginnings of its texts, from the gateway. */
type TimelineProps = { state: RunState; nowMs: number; version: number; limits?: readonly Limit[]; look?: Look };

function scaled({ fromMs, toMs }: Span, factor: number): Span {
  const middle = (fromMs + toMs) / 2;
  const half = Math.max(1, ((toMs - fromMs) / 2) * factor);
  return { fromMs: middle - half, toMs: middle + half };
}

function moved({ fromMs, toMs }: Span, share: number): Span {
  const by = (toMs - fromMs) * share;
  return { fromMs: fromMs + by, toMs: toMs + by };
}

/** Null, which means the whole run and follows it, once nothing would be cut. */
function within(span: Span, whole: Span): Span | null {
  return span.toMs - span.fromMs >= whole.toMs - whole.fromMs ? null : span;
}
