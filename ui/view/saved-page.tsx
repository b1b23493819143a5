/** The page of a run that was saved as a file: what was known then, without anything that needs a gateway. */
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { textOf } from "../model/line.ts";
import { RunState } from "../model/run-state.ts";
import type { SavedRun } from "../saved.ts";
import { Children } from "./children.tsx";
import { Failures } from "./failures.tsx";
import { Graphs } from "./graph/graph-section.tsx";
import { Money } from "./money.tsx";
import { ProgressLine } from "./progress.tsx";
import { Timeline } from "./timeline.tsx";

export function SavedPage({ run }: { run: SavedRun }) {
  const version = useSignal(1);
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
        <span class={`status ${status}`}>{status}</span>
        <span class="dim">saved {new Date(run.savedAtMs).toISOString()}</span>
      </header>
      <main>
        <Money state={state} document={run.document} version={version.value} />
        <ProgressLine state={state} nowMs={nowMs} version={version.value} />
        <Failures state={state} version={version.value} />
        <Graphs
          state={state}
          nowMs={nowMs}
          version={version.value}
          load={(id) => Promise.resolve(run.graphs[id])}
          named={() => void (version.value += 1)}
        />
        <Timeline state={state} nowMs={nowMs} version={version.value} />
        <Children state={state} version={version.value} />
      </main>
    </>
  );
}
