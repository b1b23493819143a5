/** What leaves the page: results, log, trace, the page itself; and what changes the run. Both are in menus, away from figures. */
import { useSignal } from "@preact/signals";
import type { Api, Json } from "../api.ts";
import { csv, jsonLines } from "../model/csv.ts";
import { countText } from "../model/format.ts";
import { isRecord, numberOf } from "../model/line.ts";
import type { RunState } from "../model/run-state.ts";
import type { Versioned } from "./figure.tsx";

const PAGE = 1_000;

type Props = Versioned & { api: Api; runId: string; refused: (error: unknown) => void };

export function Export({ api, runId, state, refused }: Props) {
  const progress = useSignal<string | null>(null);
  const save = (file: string, name: string) => () => {
    api
      .file(`/runs/${encodeURIComponent(runId)}/${file}`)
      .then((blob) => saveAs(blob, name))
      .catch(refused);
  };
  const results = (kind: "jsonl" | "csv") => async () => {
    try {
      const read = await resultsOf(api, runId, state, (count) => {
        progress.value = `${countText(count)} results read …`;
      });
      const type = kind === "csv" ? "text/csv" : "application/x-ndjson";
      saveAs(new Blob([kind === "csv" ? csv(read) : jsonLines(read)], { type }), `${runId}.results.${kind}`);
    } catch (error) {
      refused(error);
    } finally {
      progress.value = null;
    }
  };
  const isBusy = progress.value !== null;
  return (
    <details class="menu">
      <summary>Export</summary>
      <div role="group" aria-label="Downloads">
        {state.groups.size > 0 && (
          <>
            <button type="button" disabled={isBusy} onClick={results("jsonl")}>
              Results as JSON Lines
            </button>
            <button type="button" disabled={isBusy} onClick={results("csv")}>
              Results as CSV
            </button>
          </>
        )}
        <button type="button" onClick={save("log", `${runId}.jsonl`)}>
          Log
        </button>
        <button type="button" onClick={save("trace.json", `${runId}.trace.json`)}>
          Trace
        </button>
        <button type="button" onClick={save("page.html", `${runId}.html`)}>
          This page as a file
        </button>
        <small>
          <a href="https://ui.perfetto.dev" rel="noreferrer">
            ui.perfetto.dev
          </a>{" "}
          opens the trace.
        </small>
        <small role="status">{progress.value}</small>
      </div>
    </details>
  );
}

/** The results of all groups of the run that have ended calls, each with its group. */
async function resultsOf(api: Api, runId: string, state: RunState, tell: (count: number) => void): Promise<Json[]> {
  const all: Json[] = [];
  for (const { id, calls } of state.groups.values()) {
    // Single calls that arrived together have no index: their answers are not kept.
    if (calls.some(({ index }) => index === null)) continue;
    let after = -1;
    for (let hasMore = true; hasMore;) {
      const query = `limit=${PAGE}${after < 0 ? "" : `&after=${after}`}`;
      const page = await api.json(`/groups/${encodeURIComponent(id)}/results?${query}`, { runId });
      const data = Array.isArray(page["data"]) ? page["data"].filter(isRecord) : [];
      all.push(...data.map((result) => ({ group: id, ...result })));
      tell(all.length);
      hasMore = page["has_more"] === true;
      after = numberOf(page, "next_after");
    }
  }
  return all;
}

function saveAs(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
