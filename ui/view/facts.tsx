/** One line of what a run is at, then its bars of calls and money. Nothing is shown as zero before it is known. */
import { percentilesOf } from "../../src/run/measures/percentiles.ts";
import type { Json } from "../api.ts";
import { agoText, countText, durationText, rateText, usdText } from "../model/format.ts";
import { objectOf, textOf } from "../model/line.ts";
import { forecastOf, progressOf } from "../model/progress.ts";
import type { QueueLook } from "../model/queue.ts";
import { Figure, type Versioned } from "./figure.tsx";
import { Money } from "./money.tsx";

/** `queue`: what the gateway has said of one moment; null = nothing, and the log's own counts are shown. */
type Props = Versioned & { document: Json | null; queue: QueueLook | null; nowMs: number; isLoaded: boolean };

export function Facts({ state, version, document, queue, nowMs, isLoaded }: Props) {
  if (!isLoaded) {
    return (
      <section aria-label="Facts" aria-busy="true">
        <p class="dim">Loading the run …</p>
      </section>
    );
  }
  const { total, ended, perSecond, remainingMs } = progressOf(state, nowMs);
  const usd = document === null ? {} : objectOf(objectOf(document, "budget"), "usd");
  const limitUsd = typeof usd["limit"] === "number" ? usd["limit"] : null;
  const { counts } = state;
  const isOpen = ended < total;
  const forecast = isOpen ? forecastOf(state, limitUsd, nowMs) : null;
  return (
    <section aria-label="Facts">
      <dl class="facts">
        <Fact name="calls ended" value={`${countText(ended)} of ${countText(total)}`} />
        {counts.failed > 0 && <Fact name="failed" value={countText(counts.failed)} kind="bad" />}
        <Fact name="spent" value={usdText(state.spentUsd)} note={limitUsd === null ? "" : `of ${usdText(limitUsd)}`} />
        {isOpen && perSecond !== null && <Fact name="per second" value={rateText(perSecond)} />}
        {isOpen && (
          <Fact name="time left" value={remainingMs === null ? "not known" : `about ${durationText(remainingMs)}`} />
        )}
        <Percentiles state={state} version={version} />
        {state.startMs !== null && state.calls.length > 0 && (
          <Fact name={isOpen ? "for" : "took"} value={durationText(Math.max(0, nowMs - state.startMs))} />
        )}
        {!isOpen && state.ended === null && lastCallOf(document) !== null && (
          <Fact name="last call" value={agoText(nowMs - (lastCallOf(document) ?? nowMs))} />
        )}
      </dl>
      {forecast !== null && <p class={forecast.isShort ? "forecast slow" : "forecast"}>{forecast.text}</p>}
      {isOpen && <Waits queue={queue} />}
      <Narrowing text={isOpen ? (queue?.narrowing ?? null) : state.narrowing} />
      <div class="bars">
        <Calls state={state} version={version} total={total} ended={ended} isLive={isOpen && queue !== null} />
        <Money state={state} version={version} document={document} />
      </div>
    </section>
  );
}

function lastCallOf(document: Json | null): number | null {
  const ms = Date.parse(textOf(document ?? {}, "last_call_at") ?? "");
  return Number.isNaN(ms) ? null : ms;
}

type FactProps = { name: string; value: string; note?: string; kind?: string };

export function Fact({ name, value, note = "", kind = "" }: FactProps) {
  return (
    <div class={kind}>
      <dt>{name}</dt>
      <dd>
        {value} {note !== "" && <small>{note}</small>}
      </dd>
    </div>
  );
}

function Percentiles({ state: { times } }: Versioned) {
  const [latency, queued] = [percentilesOf(times.latency), percentilesOf(times.queued)];
  if (latency === null) return null;
  const text = ({ p50, p95, p99 }: { p50: number; p95: number; p99: number }): string =>
    [p50, p95, p99].map(durationText).join(" · ");
  return (
    <>
      <Fact name="latency p50 · p95 · p99" value={text(latency)} />
      {queued !== null && queued.p95 > 100 && <Fact name="queue p50 · p95 · p99" value={text(queued)} />}
    </>
  );
}

/** What is in flight and why the rest is not: counts and waits are of one moment, so that they add up. */
function Waits({ queue }: { queue: QueueLook | null }) {
  if (queue === null || queue.inFlight + queue.queued === 0) return null;
  const { inFlight, queued, waits } = queue;
  return (
    <p class="waits" role="status" aria-label="Waiting">
      <b>{countText(inFlight)}</b> in flight, <b>{countText(queued)}</b> queued
      {waits.length > 0 && ": "}
      {waits.map(({ cause, slots }, at) => (
        <span key={cause}>
          {at > 0 && "; "}
          <b>{countText(slots)}</b> {slots === 1 ? "waits" : "wait"} for {cause}
        </span>
      ))}
      .
    </p>
  );
}

/** Why fewer calls run, or have run, at once than the run allows, and what helps. */
function Narrowing({ text }: { text: string | null }) {
  return text === null ? null : <p class="waits narrowing">{text}</p>;
}

/**
 * The calls by state as a bar, with a legend of the states that there are. `isLive`: what is in flight and queued is in the sentence
 * above, of one moment with its reasons, and not here as well.
 */
type CallsProps = Versioned & { total: number; ended: number; isLive: boolean };

function Calls({ state, total, ended, isLive }: CallsProps) {
  const { counts } = state;
  const parts = [
    ["completed", counts.completed],
    ["failed", counts.failed],
    ["cancelled", counts.cancelled],
    ["running", counts.running],
  ] as const;
  const queued = Math.max(0, total - ended - counts.running);
  return (
    <section aria-label="Progress">
      <div
        class="bar"
        role="progressbar"
        aria-valuemin={0}
        aria-valuemax={total}
        aria-valuenow={ended}
        aria-label="Calls"
      >
        {parts.map(([kind, count]) => (
          <div key={kind} class={kind} style={{ width: `${total === 0 ? 0 : (count / total) * 100}%` }} />
        ))}
      </div>
      <dl class="figures">
        <Figure name="completed" value={countText(counts.completed)} mark="completed" />
        {counts.failed > 0 && <Figure name="failed" value={countText(counts.failed)} mark="failed" />}
        {counts.cancelled > 0 && <Figure name="cancelled" value={countText(counts.cancelled)} mark="cancelled" />}
        {!isLive && counts.running > 0 && <Figure name="in flight" value={countText(counts.running)} mark="running" />}
        {!isLive && queued > 0 && <Figure name="queued" value={countText(queued)} mark="queue" />}
        {state.skipped > 0 && <Figure name="not started" value={countText(state.skipped)} mark="queue" />}
        {state.retries > 0 && <Figure name="retries" value={countText(state.retries)} />}
      </dl>
    </section>
  );
}
