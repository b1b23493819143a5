/** The runs below a run: with a gateway by their names, with what each has spent; in a file as the log has them. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Api } from "../api.ts";
import { countText, usdText } from "../model/format.ts";
import { textOf } from "../model/line.ts";
import type { Versioned } from "./figure.tsx";
import type { Child } from "../../src/log/picture/picture.ts";
import type { RunState } from "../model/run-state.ts";
import { readPage, type ListedRun } from "../model/runs/listed.ts";
import { RunRow } from "./start/run-row.tsx";

/** Between two reads while a child run is open, ms. */
const EVERY_MS = 5_000;
const HEADS = ["run", "state", "last call", "calls", "failed", "spent", "budget", "opened"];

export function LoggedChildren({ state }: { state: RunState }) {
  if (state.children.size === 0) return null;
  return (
    <section aria-label="Child runs">
      <h2>Child runs</h2>
      <ul>
        {[...state.children.values()].map((child) => (
          <li key={child.id}>
            <code>{child.id}</code> {amountOf(child)}
          </li>
        ))}
      </ul>
    </section>
  );
}

function amountOf({ spentUsd, reservedUsd }: Child): string {
  return spentUsd === null ? `open, ${usdText(reservedUsd)} reserved` : `ended, ${usdText(spentUsd)} spent`;
}

type Props = Versioned & { api: Api; runId: string; nowMs: number };

export function Children({ api, runId, state, nowMs }: Props) {
  const runs = useSignal<readonly ListedRun[] | null>(null);
  const cursor = useSignal<string | null>(null);
  const opened = state.children.size;
  const open = [...state.children.values()].filter(({ spentUsd }) => spentUsd === null).length;
  const path = `/runs/${encodeURIComponent(runId)}/children`;
  useEffect(() => {
    if (opened === 0) return;
    let isGone = false;
    const load = async (): Promise<void> => {
      if (document.hidden) return;
      const page = await api.json(path);
      if (isGone) return;
      const read = readPage(page, api.now());
      const ids = new Set(read.map(({ id }) => id));
      runs.value = [...read, ...(runs.value ?? []).filter(({ id }) => !ids.has(id))];
      cursor.value ??= textOf(page, "next_cursor");
    };
    // What cannot be read now is read the next time.
    const look = (): void => void load().catch(() => undefined);
    look();
    const again = open === 0 ? undefined : setInterval(look, EVERY_MS);
    return () => {
      isGone = true;
      clearInterval(again);
    };
  }, [opened, open, path]);
  const more = async (): Promise<void> => {
    const page = await api.json(`${path}?cursor=${encodeURIComponent(cursor.value ?? "")}`);
    runs.value = [...(runs.value ?? []), ...readPage(page, api.now())];
    cursor.value = textOf(page, "next_cursor");
  };
  if (opened === 0) return null;
  return (
    <section aria-label="Child runs">
      <h2>
        {countText(opened)} child {opened === 1 ? "run" : "runs"}, {usdText(state.childrenUsd)} spent by ended ones
      </h2>
      <table class="runs">
        <thead>
          <tr>
            {HEADS.map((head) => (
              <th key={head} class={["calls", "failed", "spent", "budget"].includes(head) ? "number" : ""}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {runs.value === null && (
            <tr>
              <td colSpan={HEADS.length}>Loading child runs …</td>
            </tr>
          )}
          {runs.value?.map((run) => (
            <RunRow key={run.id} api={api} run={run} depth={0} nowMs={nowMs} />
          ))}
        </tbody>
      </table>
      {cursor.value !== null && (
        <p class="tools">
          <button type="button" onClick={() => void more().catch(() => undefined)}>
            Show more child runs
          </button>
        </p>
      )}
    </section>
  );
}
