/** The calls of a run over time: one row per call, queue time apart from attempts. */
import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { searchedCallsText } from "../model/call-search.ts";
import { callsText } from "../model/format.ts";
import { foundWithoutRow, rowsOf, type Row, type Shown, type Wanted } from "../model/rows.ts";
import type { RunState } from "../model/run-state.ts";
import { colouring, type ColouredBy } from "./colours.ts";
import { Details, type Look } from "./details.tsx";
import { RowList, type Place } from "./row-list.tsx";
import type { CallSearching } from "./use-call-search.ts";
import { drawBand, drawCurve, type Limit, type Span } from "./timeline-canvas.ts";

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
  ["latency", "by latency"],
];

export function Timeline({ state, nowMs, version, limits = [], look, wanted, want, searching }: TimelineProps) {
  const zoom = useSignal<Span | null>(null);
  const hovered = useSignal<{ row: Row; place: Place } | null>(null);
  const colouredBy = useSignal<ColouredBy>("state");
  const { colourOf, legend } = colouring(colouredBy.value, state);
  const found = searching?.search?.found;
  const rows = useMemo(() => rowsOf(state, wanted, found), [version, wanted, found]);
  const notBegun = useMemo(() => (found === undefined ? 0 : foundWithoutRow(state, found)), [version, found]);
  const band = useRef<HTMLCanvasElement>(null);
  const curve = useRef<HTMLCanvasElement>(null);
  const whole: Span = { fromMs: state.startMs ?? nowMs, toMs: Math.max(nowMs, (state.startMs ?? nowMs) + 1) };
  const span = zoom.value ?? whole;
  const draw = useRef(() => {});
  draw.current = () => {
    if (band.current !== null) drawBand(band.current, state.calls, span);
    if (curve.current !== null) drawCurve(curve.current, state, { span, limits });
  };
  // In the frame in which the rest of the page changes: a frame of its own would cost as much again.
  useLayoutEffect(() => draw.current());
  useEffect(() => {
    const resized = (): void => draw.current();
    addEventListener("resize", resized);
    return () => removeEventListener("resize", resized);
  }, []);
  if (state.calls.length === 0) return null;
  return (
    <section aria-label="Timeline" id="timeline">
      <h2>Calls over time</h2>
      <div class="tools">
        <input
          type="search"
          aria-label="Search calls"
          placeholder={searching === undefined ? "Search names, models, errors" : "Search prompts, answers, errors"}
          value={wanted.text}
          onInput={(event) => want({ ...wanted, text: event.currentTarget.value })}
        />
        <select
          aria-label="Calls shown"
          value={wanted.shown}
          onChange={(event) => {
            const found = FILTERS.find(([name]) => name === event.currentTarget.value);
            if (found !== undefined) want({ ...wanted, shown: found[0], cause: null });
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
        {wanted.cause !== null && (
          <button type="button" onClick={() => want({ ...wanted, shown: "all", cause: null })}>
            Only {wanted.cause.code} {wanted.cause.upstream} ✕
          </button>
        )}
      </div>
      {searching !== undefined && <Searched {...searching} notBegun={notBegun} />}
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
      <canvas class="band" ref={band} role="img" aria-label="Calls that ended and calls that failed, over time" />
      <canvas class="curve" ref={curve} role="img" aria-label="Calls in flight over time" />
      <div class="around">
        <RowList
          rows={rows}
          chosen={hovered.value?.row ?? null}
          choose={(row, place) => void (hovered.value = row === null ? null : { row, place })}
          span={span}
          nowMs={nowMs}
          colourOf={colourOf}
        />
        <Details row={hovered.value?.row ?? null} place={hovered.value?.place ?? null} nowMs={nowMs} look={look} />
      </div>
      {rows.length === 0 && <p class="dim">{isSearchOpen(searching) ? "No such calls so far." : "No such calls."}</p>}
    </section>
  );
}

/** `limits`: how many calls may be in flight; `look`: a call of a group with the beginnings of its texts, from the gateway. */
type TimelineProps = {
  state: RunState;
  nowMs: number;
  version: number;
  limits?: readonly Limit[];
  look?: Look;
  wanted: Wanted;
  want: (wanted: Wanted) => void;
  /** The search in prompts and answers; absent = there is no gateway to ask. */
  searching?: CallSearching;
};

/** Whether there are texts that were not searched. */
function isSearchOpen(searching: CallSearching | undefined): boolean {
  return searching !== undefined && (searching.isBusy || (searching.search?.cursor ?? null) !== null);
}

/** How far prompts and answers are searched, and a button that goes on. */
function Searched({ search, isBusy, problem, more, notBegun }: CallSearching & { notBegun: number }) {
  if (search === null && !isBusy && problem === null) return null;
  return (
    <p class="searched dim" aria-live="polite">
      {problem ?? (search === null ? "Searching prompts and answers …" : searchedCallsText(search))}
      {notBegun > 0 && ` ${callsText(notBegun)} of those found ${notBegun === 1 ? "has" : "have"} not begun.`}{" "}
      {search !== null && search.cursor !== null && (
        <button type="button" disabled={isBusy} onClick={more}>
          {isBusy ? "Searching …" : "Search older calls"}
        </button>
      )}
    </p>
  );
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
