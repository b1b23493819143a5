/** A run as a row of the table, and below it, indented, the runs that it has opened. */
import { useSignal } from "@preact/signals";
import type { Api } from "../../api.ts";
import { agoText, callsText, countText, usdText } from "../../model/format.ts";
import { numberOf, objectOf, textOf } from "../../model/line.ts";
import type { FoundText } from "../../model/runs/text-search.ts";
import { activityOf, readPage, type ListedRun } from "../../model/runs/listed.ts";

/** `found`: where the run has the searched text; null = it needs no row of its own. */
type Props = { api: Api; run: ListedRun; depth: number; nowMs: number; found?: FoundText | null; text?: string };
type Below = { runs: readonly ListedRun[]; cursor: string | null; totalUsd: number | null };

/** Columns of the table. */
const COLUMNS = 8;

export function RunRow({ api, run, depth, nowMs, found = null, text = "" }: Props) {
  const below = useSignal<Below | null>(null);
  const isOpen = useSignal(false);
  const load = async (): Promise<void> => {
    const path = `/runs/${encodeURIComponent(run.id)}`;
    const cursor = below.value?.cursor ?? null;
    try {
      const [page, sum] = await Promise.all([
        api.json(`${path}/children${cursor === null ? "" : `?cursor=${encodeURIComponent(cursor)}`}`),
        api.json(`${path}?subtree=1`),
      ]);
      const spent = objectOf(objectOf(objectOf(sum, "subtree"), "budget"), "usd");
      below.value = {
        runs: [...(below.value?.runs ?? []), ...readPage(page, api.now())],
        cursor: textOf(page, "next_cursor"),
        totalUsd: numberOf(spent, "spent"),
      };
    } catch {
      // A run that is gone has nothing below it.
      below.value = { runs: [], cursor: null, totalUsd: null };
    }
  };
  const toggle = (): void => {
    isOpen.value = !isOpen.value;
    if (isOpen.value && below.value === null) void load();
  };
  const opened = below.value;
  return (
    <>
      <tr class={run.problem === null ? "" : "unread"}>
        <td class="name">
          <div style={{ paddingLeft: `${depth * 1.25}rem` }}>
            {run.children > 0 && (
              <button type="button" class="toggle" aria-expanded={isOpen.value} onClick={toggle}>
                <span aria-hidden="true">{isOpen.value ? "▾" : "▸"}</span> {countText(run.children)}
                <span class="away"> child runs of {run.name ?? run.id}</span>
              </button>
            )}
            <a href={`/ui/runs/${encodeURIComponent(run.id)}`}>{run.name ?? <code>{run.id.slice(0, 16)}…</code>}</a>
          </div>
        </td>
        {run.problem === null ? (
          <Figures run={run} totalUsd={isOpen.value ? (opened?.totalUsd ?? null) : null} nowMs={nowMs} />
        ) : (
          <td colSpan={COLUMNS - 1}>
            {run.status}: {run.problem}
          </td>
        )}
      </tr>
      {found !== null && <Found run={run} found={found} text={text} />}
      {isOpen.value && opened === null && <Line depth={depth + 1} text="Loading child runs …" />}
      {isOpen.value &&
        opened?.runs.map((child) => <RunRow key={child.id} api={api} run={child} depth={depth + 1} nowMs={nowMs} />)}
      {isOpen.value && opened !== null && opened.cursor !== null && (
        <tr>
          <td colSpan={COLUMNS}>
            <button type="button" onClick={() => void load()}>
              Show more child runs of {run.name ?? run.id}
            </button>
          </td>
        </tr>
      )}
    </>
  );
}

/** Where the searched text is, as the way to the calls that have it. */
function Found({ run, found: { where, excerpt }, text }: { run: ListedRun; found: FoundText; text: string }) {
  const address = `/ui/runs/${encodeURIComponent(run.id)}?${new URLSearchParams({ search: text }).toString()}`;
  return (
    <tr class="found">
      <td colSpan={COLUMNS}>
        <span class="dim">{where === "name" ? "call" : where}</span> <a href={address}>{excerpt}</a>
      </td>
    </tr>
  );
}

function Line({ depth, text }: { depth: number; text: string }) {
  return (
    <tr>
      <td colSpan={COLUMNS} class="dim">
        <div style={{ paddingLeft: `${depth * 1.25}rem` }}>{text}</div>
      </td>
    </tr>
  );
}

function Figures({ run, totalUsd, nowMs }: { run: ListedRun; totalUsd: number | null; nowMs: number }) {
  const { status, lastCallMs, calls, failed, spentUsd, ownUsd, limitUsd, createdMs } = run;
  const activity = activityOf(run);
  // Nothing is in flight, and calls wait: for a key, the budget or a retry.
  const shown = activity === "working" && run.inFlight === 0 ? "waiting" : activity;
  const total = Math.max(totalUsd ?? 0, spentUsd);
  const isSplit = ownUsd !== null && run.children > 0 && total - ownUsd > 1e-9;
  return (
    <>
      <td class="state">
        <span class={`state ${shown} ${status}`}>
          {activity === "ended" || status === "paused" || status === "escalated" ? status : shown}
        </span>
        {shown === "working" && (
          <small>
            {countText(run.inFlight)} in flight{run.queued > 0 && `, ${countText(run.queued)} queued`}
          </small>
        )}
        {shown === "waiting" && <small>{countText(run.queued)} queued</small>}
      </td>
      <td class="last">{lastCallMs === null ? <span class="dim">no call yet</span> : agoText(nowMs - lastCallMs)}</td>
      <td class="number calls" aria-label={callsText(calls)}>
        {countText(calls)}
      </td>
      <td class="number failed">
        {failed > 0 ? (
          <a class="bad" href={`/ui/runs/${encodeURIComponent(run.id)}?show=failed`} title={codesOf(run)}>
            {countText(failed)}
          </a>
        ) : (
          <span class="dim">0</span>
        )}
      </td>
      <td class="number spent">
        {usdText(total)}
        {isSplit && <small>own {usdText(ownUsd)}</small>}
      </td>
      <td class="number limit">
        {limitUsd === null ? <span class="dim">no limit</span> : usdText(limitUsd)}
        {limitUsd !== null && limitUsd > 0 && (
          <i class="share">
            <i style={{ width: `${Math.min(100, (total / limitUsd) * 100)}%` }} />
          </i>
        )}
      </td>
      <td class="opened">
        <time dateTime={new Date(createdMs).toISOString()} title={new Date(createdMs).toLocaleString()}>
          {agoText(nowMs - createdMs)}
        </time>
      </td>
    </>
  );
}

function codesOf({ failures }: ListedRun): string {
  return Object.entries(failures)
    .map(([code, calls]) => `${countText(calls)} ${code}`)
    .join(", ");
}
