/** The page of a run that was saved as a file: what was known then, without anything that needs a gateway. */
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { textOf } from "../model/line.ts";
import { RunState } from "../model/run-state.ts";
import type { SavedRun } from "../saved.ts";
import { ALL_CALLS } from "../model/rows.ts";
import { LoggedChildren } from "./children.tsx";
import { Facts } from "./facts.tsx";
import { FailureList } from "./failures.tsx";
import { Graphs } from "./graph/graph-section.tsx";
import { Timeline } from "./timeline.tsx";

export function SavedPage({ run }: { run: SavedRun }) {
  const version = useSignal(1);
  const wanted = useSignal(ALL_CALLS);
  const state = useMemo(() => {
    const folded = new RunState();
    for (const line of run.lines) folded.apply(line);
    return folded;
  }, [run]);
  const status = state.ended ?? textOf(run.document, "status") ?? "active";
  const nowMs = state.ended === null && state.endedCalls < state.total ? run.savedAtMs : state.lastMs;
  return (
    <>
      <header>
        <h1>
          {textOf(run.document, "name") ?? "Run"} <code>{run.id}</code>
        </h1>
        <span class={`state ended ${status}`}>{status}</span>
        <span class="dim">saved {new Date(run.savedAtMs).toISOString()}</span>
      </header>
      <main>
        <Facts state={state} version={version.value} document={run.document} queue={null} nowMs={nowMs} isLoaded />
        <FailureList
          state={state}
          version={version.value}
          show={({ code, upstream }) => void (wanted.value = { shown: "failed", text: "", cause: { code, upstream } })}
        />
        <Graphs
          state={state}
          nowMs={nowMs}
          version={version.value}
          load={(id) => Promise.resolve(run.graphs[id])}
          named={() => void (version.value += 1)}
        />
        <Timeline
          state={state}
          nowMs={nowMs}
          version={version.value}
          wanted={wanted.value}
          want={(next) => void (wanted.value = next)}
        />
        <LoggedChildren state={state} />
      </main>
    </>
  );
}
