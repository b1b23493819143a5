/** What `GET /metrics` shows: the sums of all runs by upstream, model and outcome, and the state of each gate. */
import { usdOf } from "../../run/money/money.ts";
import {
  addSheet,
  LATENCY_BOUNDS_MS,
  METER_OUTCOMES,
  OTHER_MODELS,
  QUEUE_BOUNDS_MS,
  type Histogram,
  type MeterSheet,
  type ModelMeter,
  type OutcomeSums,
} from "../../gate/meter.ts";
import type { GateStatus } from "../../gate/wire.ts";
import { METRICS_SERIES_MAX } from "../../limits.ts";
import type { Family, Labels, Sample } from "./exposition.ts";

/** What is known of one gate. `key` null = its upstream has one, or none. `read` null = the gate could not be read. */
export type MeasuredGate = { upstream: string; key: string | null; read: ReadGate | null };

export type ReadGate = { status: GateStatus; sheet: MeterSheet };

/** `unreadRuns`: runs that may have counted more, which this read did not visit. */
export type Measured = { gates: readonly MeasuredGate[]; unreadRuns: number };

type Row = { labels: { upstream: string; model: string }; meter: ModelMeter };

/** The families of one reply, METRICS_SERIES_MAX series at most. */
export function metricFamilies({ gates, unreadRuns }: Measured): Family[] {
  const ofGates = gateFamilies(gates);
  const unread = gauge("fanout_unread_runs", "Runs whose latest counts are not in this reply", [
    { suffix: "", labels: {}, value: unreadRuns },
  ]);
  const missing = gates.filter(({ read }) => read === null);
  const unreadGates = gauge(
    "fanout_gate_unread",
    "1 = the key's gate did not reply: what its upstream has used is not in this reply",
    missing.map(({ upstream, key }) => ({ suffix: "", labels: { upstream, key: key ?? "" }, value: 1 })),
  );
  const count = gauge("fanout_unread_gates", "Keys of upstreams whose figures are not in this reply", [
    { suffix: "", labels: {}, value: missing.length },
  ]);
  const notRead = [unread, unreadGates, count];
  const taken = [...ofGates, ...notRead].reduce((sum, { samples }) => sum + samples.length, 0);
  return [...modelFamilies(rowsOf(gates, METRICS_SERIES_MAX - taken)), ...ofGates, ...notRead];
}

/**
 * The models in a fixed order, so that a series that was shown stays; those that do not fit are shown together. An upstream one of
 * whose gates could not be read has none: a sum without it would be lower than the one before, which Prometheus takes for a restart.
 */
function rowsOf(gates: readonly MeasuredGate[], seriesMax: number): Row[] {
  const all: MeterSheet = {};
  const incomplete = new Set(gates.filter(({ read }) => read === null).map(({ upstream }) => upstream));
  for (const { upstream, read } of gates)
    if (read !== null && !incomplete.has(upstream)) addSheet(all, read.sheet, Infinity);
  const upstreams = new Set(gates.map(({ upstream }) => upstream));
  const rows: Row[] = [];
  const others: MeterSheet = {};
  let left = seriesMax - upstreams.size * SERIES_PER_MODEL;
  for (const name of Object.keys(all)) {
    const meter = all[name];
    if (meter === undefined) continue;
    const slash = name.indexOf("/");
    const labels = { upstream: name.slice(0, slash), model: name.slice(slash + 1) };
    left -= labels.model === OTHER_MODELS ? 0 : SERIES_PER_MODEL;
    if (labels.model !== OTHER_MODELS && left >= 0) rows.push({ labels, meter });
    else addSheet(others, { [`${labels.upstream}/${OTHER_MODELS}`]: meter }, Infinity);
  }
  for (const [name, meter] of Object.entries(others)) {
    rows.push({ labels: { upstream: name.slice(0, name.indexOf("/")), model: OTHER_MODELS }, meter });
  }
  return rows;
}

/** Most series of one model: calls, hedges, two kinds of tokens, dollars; two histograms with their sums and counts. */
const SERIES_PER_MODEL = METER_OUTCOMES.length + 1 + 3 * 2 + LATENCY_BOUNDS_MS.length + 3 + QUEUE_BOUNDS_MS.length + 3;

function modelFamilies(rows: readonly Row[]): Family[] {
  const paid = (valueOf: (sums: OutcomeSums) => number, more: Labels = {}): Sample[] =>
    rows.flatMap(({ labels, meter }) => paidSamples(meter, { ...labels, ...more }, valueOf));
  return [
    counter("fanout_calls", "Attempts that have ended", rows.flatMap(callSamples)),
    counter("fanout_hedges", "Attempts that were started beside a slow one of their call", rows.flatMap(hedgeSamples)),
    counter("fanout_tokens", "Tokens that were charged", [
      ...paid(({ promptTokens }) => promptTokens, { direction: "prompt" }),
      ...paid(({ completionTokens }) => completionTokens, { direction: "completion" }),
    ]),
    counter(
      "fanout_cost_usd",
      "US dollars that were charged",
      paid(({ costNanoUsd }) => usdOf(costNanoUsd)),
    ),
    histogram("fanout_latency_seconds", "Time from dispatch to the end of attempts that succeeded", rows, {
      bounds: LATENCY_BOUNDS_MS,
      of: ({ latency }) => latency,
    }),
    histogram("fanout_queue_seconds", "Time that calls waited for the start of their first attempt", rows, {
      bounds: QUEUE_BOUNDS_MS,
      of: ({ queue }) => queue,
    }),
  ];
}

function callSamples({ labels, meter }: Row): Sample[] {
  return METER_OUTCOMES.flatMap((outcome) => {
    const sums = meter.outcomes[outcome];
    return sums === undefined ? [] : [{ suffix: "_total", labels: { ...labels, outcome }, value: sums.calls }];
  });
}

function hedgeSamples({ labels, meter: { hedges } }: Row): Sample[] {
  return hedges === undefined ? [] : [{ suffix: "_total", labels, value: hedges }];
}

/** Success and everything else: what fails is mostly free, and five outcomes would make as many series more. */
function paidSamples(meter: ModelMeter, labels: Labels, valueOf: (sums: OutcomeSums) => number): Sample[] {
  const { success, ...failed } = meter.outcomes;
  const lost = Object.values(failed).reduce((sum, sums) => sum + valueOf(sums), 0);
  const sample = (outcome: string, value: number): Sample => {
    return { suffix: "_total", labels: { ...labels, outcome }, value };
  };
  return [
    ...(success === undefined ? [] : [sample("success", valueOf(success))]),
    ...(lost === 0 ? [] : [sample("failure", lost)]),
  ];
}

function histogram(
  name: string,
  help: string,
  rows: readonly Row[],
  { bounds, of }: { bounds: readonly number[]; of: (meter: ModelMeter) => Histogram },
): Family {
  const samples = rows.flatMap(({ labels, meter }) => histogramSamples(labels, of(meter), bounds));
  return { name, type: "histogram", unit: "seconds", help, samples };
}

function histogramSamples(labels: Labels, { counts, sumMs }: Histogram, bounds: readonly number[]): Sample[] {
  let count = 0;
  const buckets = counts.map((more, index): Sample => {
    count += more;
    const bound = bounds[index];
    const le = bound === undefined ? "+Inf" : canonical(bound / 1_000);
    return { suffix: "_bucket", labels: { ...labels, le }, value: count };
  });
  return [...buckets, { suffix: "_sum", labels, value: sumMs / 1_000 }, { suffix: "_count", labels, value: count }];
}

/** The format wants a point in every bound, as in `1.0`. */
function canonical(value: number): string {
  return Number.isInteger(value) ? value.toFixed(1) : String(value);
}

function gateFamilies(gates: readonly MeasuredGate[]): Family[] {
  const each = (valueOf: (status: GateStatus) => number | null): Sample[] =>
    gates.flatMap(({ upstream, key, read }): Sample[] => {
      const value = read === null ? null : valueOf(read.status);
      return value === null ? [] : [{ suffix: "", labels: { upstream, key: key ?? "" }, value }];
    });
  return [
    gauge(
      "fanout_gate_in_flight",
      "Attempts in flight",
      each(({ inFlight }) => inFlight),
    ),
    gauge(
      "fanout_gate_waiting",
      "Attempts that wait for the key",
      each(({ waiting }) => waiting),
    ),
    gauge(
      "fanout_gate_permits",
      "Attempts that runs may have in flight; no series = no limit",
      each(({ permits }) => permits),
    ),
    gauge(
      "fanout_gate_width",
      "Learned width of the key; no series = none is needed",
      each(({ width }) => width),
    ),
    gauge(
      "fanout_gate_stopped",
      "1 while the provider refuses the key",
      each(({ stop }) => (stop === null ? 0 : 1)),
    ),
  ];
}

function counter(name: string, help: string, samples: readonly Sample[]): Family {
  return { name, type: "counter", help, samples };
}

function gauge(name: string, help: string, samples: readonly Sample[]): Family {
  return { name, type: "gauge", help, samples };
}
