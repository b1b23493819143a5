/** The calls of a run over time: one row per call, queue time apart from attempts. */
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { nameOf, queueMsOf, type Call } from "../model/call.ts";
import { durationText, usdText } from "../model/format.ts";
import { rowsOf, type Row, type Shown } from "../model/rows.ts";
import type { RunState } from "../model/run-state.ts";
import { drawCurve, drawRows, ROW_PX, type Span } from "./timeline-canvas.ts";

/** Browsers lay out no element that is much taller than this; a list of more rows is cut, and says so. */
const ROWS_MAX = 500_000;
const FILTERS: readonly [Shown, string][] = [
  ["all", "all calls"],
  ["running", "in flight or queued"],
  ["failed", "failed"],
  ["retried", "with retries"],
];

export function Timeline({ state, nowMs, version, width = null }: TimelineProps) {
  const shown = useSignal<Shown>("all");
  const zoom = useSignal<Span | null>(null);
  const hovered = useSignal<Row | null>(null);
  const rows = useMemo(() => rowsOf(state, shown.value).slice(0, ROWS_MAX), [version, shown.value]);
  const list = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const curve = useRef<HTMLCanvasElement>(null);
  const whole: Span = { fromMs: state.startMs ?? nowMs, toMs: Math.max(nowMs, (state.startMs ?? nowMs) + 1) };
  const span = zoom.value ?? whole;
  const draw = (): void => {
    const topPx = list.current?.scrollTop ?? 0;
    if (canvas.current !== null) drawRows(canvas.current, rows, { span, topPx, nowMs, hovered: hovered.value });
    if (curve.current !== null) drawCurve(curve.current, state.inFlight, { span, width });
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
      <canvas class="curve" ref={curve} role="img" aria-label="Calls in flight over time" />
      <div
        class="rows"
        ref={list}
        tabIndex={0}
        role="group"
        aria-label={`${rows.length} rows; calls that failed are also listed under Failures`}
        onScroll={() => requestAnimationFrame(draw)}
        onMouseMove={(event) => void (hovered.value = rowAt(event))}
        onMouseLeave={() => void (hovered.value = null)}
      >
        <canvas ref={canvas} aria-hidden="true" />
        <div style={{ height: `${rows.length * ROW_PX}px` }} />
      </div>
      <Details row={hovered.value} nowMs={nowMs} />
    </section>
  );
}

type TimelineProps = { state: RunState; nowMs: number; version: number; width?: number | null };

/** The facts of the row under the pointer; always as tall, so that the page does not jump. */
function Details({ row, nowMs }: { row: Row | null; nowMs: number }) {
  if (row === null) return <p class="details dim">Point at a row to see its call.</p>;
  if (row.kind === "group") {
    const { id, status, ended, count } = row.group;
    return (
      <p class="details">
        <code>{id}</code> {status ?? "running"}: {ended} of {count} ended
      </p>
    );
  }
  return <p class="details">{detailsOf(row.call, nowMs)}</p>;
}

function detailsOf(call: Call, nowMs: number): string {
  const attempts = call.attempts.map(({ startMs, endMs, outcome, target }) => {
    const took = durationText((endMs ?? nowMs) - startMs);
    return `${target} ${outcome ?? "in flight"} ${took}`;
  });
  const error = call.code === null ? "" : `; ${call.code}: ${call.message ?? ""}`;
  const queued = durationText(queueMsOf(call, nowMs));
  return `${nameOf(call)}: ${call.state}, queued ${queued}, ${usdText(call.costUsd)}; ${attempts.join(", ")}${error}`;
}

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
