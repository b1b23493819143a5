import { percentilesOf, type Durations } from "../../src/run/measures/percentiles.ts";
import { countText, durationText, usdText } from "../model/format.ts";
import { progressOf } from "../model/progress.ts";
import type { RunState } from "../model/run-state.ts";
import { Figure } from "./money.tsx";

/** How far the run is: calls by state, rate, time left, predicted cost. */
export function ProgressLine({ state, nowMs }: { state: RunState; nowMs: number; version: number }) {
  const { total, ended, perSecond, remainingMs, predictedUsd } = progressOf(state, nowMs);
  const { counts } = state;
  const percent = (part: number) => `${total === 0 ? 0 : (part / total) * 100}%`;
  const isOpen = ended < total;
  return (
    <section aria-label="Progress">
      <h2>
        {countText(ended)} of {countText(total)} calls
      </h2>
      <div
        class="bar"
        role="progressbar"
        aria-valuemin={0}
        aria-valuemax={total}
        aria-valuenow={ended}
        aria-label="Calls"
      >
        <div class="completed" style={{ width: percent(counts.completed) }} />
        <div class="failed" style={{ width: percent(counts.failed) }} />
        <div class="cancelled" style={{ width: percent(counts.cancelled) }} />
        <div class="running" style={{ width: percent(counts.running) }} />
      </div>
      <dl class="figures">
        <Figure name="completed" value={countText(counts.completed)} mark="completed" />
        <Figure name="failed" value={countText(counts.failed)} mark="failed" />
        {counts.cancelled > 0 && <Figure name="cancelled" value={countText(counts.cancelled)} mark="cancelled" />}
        <Figure name="in flight" value={countText(counts.running)} mark="running" />
        <Figure name="queued" value={countText(Math.max(0, total - ended - counts.running))} />
        {state.skipped > 0 && <Figure name="not started" value={countText(state.skipped)} />}
        {state.retries > 0 && <Figure name="retries" value={countText(state.retries)} />}
        <Percentiles name="latency" durations={state.times.latency} />
        <Percentiles name="queue" durations={state.times.queued} />
        {isOpen && <Figure name="rate" value={perSecond === null ? "–" : `${perSecond.toFixed(1)} / s`} />}
        {isOpen && (
          <Figure name="time left" value={remainingMs === null ? "–" : `about ${durationText(remainingMs)}`} />
        )}
        {isOpen && (
          <Figure name="cost at the end" value={predictedUsd === null ? "–" : `about ${usdText(predictedUsd)}`} />
        )}
        {state.startMs !== null && <Figure name="since" value={durationText(Math.max(0, nowMs - state.startMs))} />}
      </dl>
    </section>
  );
}

/** The times that half, 95 and 99 of a hundred calls took at most. */
function Percentiles({ name, durations }: { name: string; durations: Durations }) {
  const found = percentilesOf(durations);
  if (found === null) return null;
  const value = [found.p50, found.p95, found.p99].map(durationText).join(" · ");
  return <Figure name={`${name} p50 · p95 · p99`} value={value} />;
}
