/** What was spent: by hour, by model, and by the names of runs. */
import type { Json } from "../../api.ts";
import { callsText, countText, usdText } from "../../model/format.ts";
import { isRecord, numberOf, textOf } from "../../model/line.ts";

const HOUR_MS = 3_600_000;
const HOURS = 24;
const LISTED_MAX = 5;
const CHART = { width: 480, height: 96, gap: 3, labels: 16 } as const;

type Bar = { hourMs: number; usd: number; calls: number; failed: number };

export function Spend({ overview, nowMs }: { overview: Json | null; nowMs: number }) {
  if (overview === null) {
    return (
      <section aria-label="Spend" aria-busy="true" class="spend">
        <p class="dim">Adding up what was spent …</p>
      </section>
    );
  }
  const bars = barsOf(overview, nowMs);
  const total = bars.reduce((sum, { usd }) => sum + usd, 0);
  if (total === 0 && bars.every(({ calls, failed }) => calls + failed === 0)) return null;
  const spent = numberOf(overview, "spent_usd");
  const byModel = listOf(overview, "by_model").map((each) => ({
    name: textOf(each, "model") ?? "",
    usd: numberOf(each, "usd"),
    note: "",
  }));
  const children = spent - byModel.reduce((sum, { usd }) => sum + usd, 0);
  // Child runs report to their parents, and only sums.
  const models = children > 1e-9 ? [...byModel, { name: "child runs", usd: children, note: "" }] : byModel;
  // Who has spent nothing, and failed at nothing, is no news.
  const isNews = (each: Json): boolean => numberOf(each, "usd") > 0 || numberOf(each, "failed") > 0;
  const named = listOf(overview, "by_name").filter(isNews);
  const names = named.map((each) => {
    const [runs, failed] = [numberOf(each, "runs"), numberOf(each, "failed")];
    const failures = failed === 0 ? "" : `, ${countText(failed)} failed`;
    return {
      name: textOf(each, "name") ?? "without a name",
      usd: numberOf(each, "usd"),
      note: `${countText(runs)} ${runs === 1 ? "run" : "runs"}${failures}`,
    };
  });
  return (
    <section aria-label="Spend" class="spend">
      <div>
        <h2>Spend by hour, {usdText(total)} in 24 hours</h2>
        <Chart bars={bars} />
      </div>
      <Ranking title="By model, today" rows={models} />
      <Ranking title="By name, today" rows={names} />
    </section>
  );
}

function listOf(overview: Json, name: string): Json[] {
  const listed = overview[name];
  return Array.isArray(listed) ? listed.filter(isRecord) : [];
}

/** The last 24 hours, those in which nothing was spent included. */
function barsOf(overview: Json, nowMs: number): Bar[] {
  const known = new Map(listOf(overview, "hours").map((each) => [Date.parse(textOf(each, "hour") ?? ""), each]));
  const lastMs = nowMs - (nowMs % HOUR_MS);
  return Array.from({ length: HOURS }, (_, at) => {
    const hourMs = lastMs - (HOURS - 1 - at) * HOUR_MS;
    const use = known.get(hourMs) ?? {};
    return { hourMs, usd: numberOf(use, "usd"), calls: numberOf(use, "attempts"), failed: numberOf(use, "failed") };
  });
}

function Chart({ bars }: { bars: readonly Bar[] }) {
  const most = Math.max(...bars.map(({ usd }) => usd), Number.MIN_VALUE);
  const step = CHART.width / bars.length;
  const high = CHART.height - CHART.labels;
  const dearest = bars.reduce((best, bar) => (bar.usd > best.usd ? bar : best));
  const label = `Spend in each of the last 24 hours, at most ${usdText(dearest.usd)} from ${hourText(dearest.hourMs)} on`;
  return (
    <svg class="hours" viewBox={`0 0 ${CHART.width} ${CHART.height}`} role="img" aria-label={label}>
      {bars.map(({ hourMs, usd, calls, failed }, at) => {
        const height = usd === 0 ? 1 : Math.max(2, (usd / most) * (high - 2));
        const failures = failed === 0 ? "" : `, ${countText(failed)} failed`;
        return (
          <g key={hourMs}>
            <rect
              class={usd === 0 ? "none" : "amount"}
              x={at * step}
              y={high - height}
              width={step - CHART.gap}
              height={height}
              rx={1.5}
            />
            {failed > 0 && <rect class="failures" x={at * step} y={high} width={step - CHART.gap} height={3} />}
            <rect x={at * step} y={0} width={step} height={CHART.height} class="target">
              <title>{`${hourText(hourMs)}: ${usdText(usd)}, ${callsText(calls)}${failures}`}</title>
            </rect>
            {at % 6 === 5 && (
              <text x={(at + 1) * step - CHART.gap} y={CHART.height - 1} text-anchor="end">
                {hourText(hourMs)}
              </text>
            )}
          </g>
        );
      })}
    </svg>
  );
}

function hourText(ms: number): string {
  const date = new Date(ms);
  return `${String(date.getHours()).padStart(2, "0")}:${String(date.getMinutes()).padStart(2, "0")}`;
}

function Ranking({ title, rows }: { title: string; rows: readonly { name: string; usd: number; note: string }[] }) {
  const most = Math.max(...rows.map(({ usd }) => usd), Number.MIN_VALUE);
  const rest = rows.slice(LISTED_MAX);
  const restUsd = rest.reduce((sum, { usd }) => sum + usd, 0);
  return (
    <div>
      <h2>{title}</h2>
      {rows.length === 0 && <p class="dim">Nothing was spent today.</p>}
      <ol class="ranking">
        {rows.slice(0, LISTED_MAX).map(({ name, usd, note }) => (
          <li key={name}>
            <span class="named">
              {name} <small class="dim">{note}</small>
            </span>
            <span class="number">{usdText(usd)}</span>
            <i style={{ width: `${(usd / most) * 100}%` }} />
          </li>
        ))}
        {rest.length > 0 && (
          <li>
            <span class="dim">
              {rest.length} {rest.length === 1 ? "other" : "others"}
            </span>
            <span class="number">{usdText(restUsd)}</span>
          </li>
        )}
      </ol>
    </div>
  );
}
