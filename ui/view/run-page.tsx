/** The page of one run: loads its document, follows its log, and draws what both say. */
import { batch, signal, useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { ApiError, type Api, type Json } from "../api.ts";
import { signOut } from "../credential.ts";
import { follow } from "../follow.ts";
import { isRecord, numberOf, textOf } from "../model/line.ts";
import { paced, type Pace } from "../model/paced.ts";
import { RunState } from "../model/run-state.ts";
import { Actions } from "./actions.tsx";
import { Children } from "./children.tsx";
import { Downloads } from "./downloads.tsx";
import { Failures } from "./failures.tsx";
import { Graphs } from "./graph/graph-section.tsx";
import { Money } from "./money.tsx";
import { ProgressLine } from "./progress.tsx";
import { SignIn } from "./sign-in.tsx";
import type { Limit } from "./timeline-canvas.ts";
import { Timeline } from "./timeline.tsx";
import { Waiting } from "./waiting.tsx";

const BROWSER: Pace = {
  now: () => performance.now(),
  after: (step, delayMs) => void setTimeout(step, delayMs),
  frame: (step) => void requestAnimationFrame(step),
  soon: queueMicrotask.bind(globalThis),
};

/** What is shown, and a number that grows whenever it has changed. */
function followed(api: Api, runId: string) {
  const state = new RunState();
  const version = signal(0);
  const document = signal<Json | null>(null);
  const isConnected = signal(false);
  const problem = signal<ApiError | null>(null);
  const stop = new AbortController();
  const draw = paced(() => void (version.value += 1), BROWSER);
  const load = async (): Promise<void> => {
    document.value = await api.json(`/runs/${encodeURIComponent(runId)}`, { signal: stop.signal });
  };
  const refused = (error: unknown): void => {
    if (!stop.signal.aborted) problem.value = error instanceof ApiError ? error : new ApiError(0, String(error));
  };
  const start = (): void => {
    load().catch(refused);
    const follower = {
      lines: (lines: Parameters<RunState["apply"]>[0][]) => {
        for (const line of lines) state.apply(line);
        draw();
      },
      connected: (now: boolean) => void (isConnected.value = now),
    };
    follow(api, runId, follower, stop.signal)
      .then(load)
      .catch(refused)
      .finally(() => batch(() => (isConnected.value = false)));
  };
  return { state, version, document, isConnected, problem, load, draw, refused, start, stop: () => stop.abort() };
}

function outlineFrom(api: Api, runId: string) {
  return (id: string): Promise<Json> => api.json(`/dag/${encodeURIComponent(id)}/outline`, { runId });
}

function lookFrom(api: Api, runId: string) {
  return (group: string, index: number): Promise<Json> =>
    api.json(`/groups/${encodeURIComponent(group)}/slots/${index}`, { runId });
}

/** How many calls the run may have in flight, if that is bounded. */
function widthOf(document: Json | null): Limit[] {
  const width = numberOf(document ?? {}, "effective_parallel");
  return width > 0 ? [{ name: "width of the run", count: width }] : [];
}

/** The learned widths of the keys that a run's calls go to, for the operator: nobody else may see them. */
async function gateWidths(api: Api, used: ReadonlySet<string>): Promise<Limit[]> {
  const { data } = await api.json("/upstreams");
  const gates = Array.isArray(data) ? data.filter(isRecord) : [];
  return gates.flatMap((gate) => {
    const [name, key, width] = [textOf(gate, "name") ?? "", textOf(gate, "key"), numberOf(gate, "width")];
    return used.has(name) && width > 0 ? [{ name: `gate ${key ?? name}`, count: width }] : [];
  });
}

export function RunPage({ api, runId }: { api: Api; runId: string }) {
  const run = useMemo(() => followed(api, runId), [api, runId]);
  const now = useSignal(Date.now());
  const gates = useSignal<Limit[]>([]);
  useEffect(() => {
    run.start();
    const clock = setInterval(() => void (now.value = Date.now()), 1_000);
    return () => {
      clearInterval(clock);
      run.stop();
    };
  }, [run]);
  const isRetrying = useSignal(false);
  const retry = (id: string): void => {
    isRetrying.value = true;
    const request = { method: "POST", runId, headers: { prefer: "respond-async" } };
    api
      .json(`/groups/${encodeURIComponent(id)}/retry`, request)
      .catch(run.refused)
      .finally(() => void (isRetrying.value = false));
  };
  const problem = run.problem.value;
  if (problem?.status === 401 || problem?.status === 403) return <SignIn isRun problem={problem.message} />;
  const { state } = run;
  useEffect(() => {
    if (!api.isOperator) return;
    gateWidths(api, state.upstreams)
      .then((widths) => void (gates.value = widths))
      // The curve is of use without them.
      .catch(() => undefined);
  }, [api, state.upstreams.size]);
  const version = run.version.value;
  const document = run.document.value;
  const known = document === null ? null : (textOf(document, "status") ?? "active");
  const status = state.ended ?? known ?? (problem === null ? "loading" : "unknown");
  // Time goes on while calls have not ended; else it ends with the last event.
  const isBusy = state.ended === null && state.endedCalls < state.total;
  const nowMs = isBusy ? Math.max(now.value, state.lastMs) : state.lastMs;
  const name = textOf(document ?? {}, "name");
  const parentId = textOf(document ?? {}, "parent_id");
  return (
    <>
      <header>
        <a href="/ui" class="home">
          fanout
        </a>
        <h1>
          {name ?? "Run"} <code>{runId}</code>
        </h1>
        {parentId !== null && <a href={`/ui/runs/${encodeURIComponent(parentId)}`}>parent run</a>}
        <span class={`status ${status}`}>{status}</span>
        <span class="dim" aria-live="polite">
          {state.ended === null && document !== null ? (run.isConnected.value ? "live" : "connecting …") : ""}
        </span>
        <button type="button" class="quiet" onClick={signOut}>
          Forget credential
        </button>
      </header>
      <main>
        {problem !== null && (
          <p class="problem" role="alert">
            {problem.message}
          </p>
        )}
        <Money state={state} document={document} version={version} />
        <ProgressLine state={state} nowMs={nowMs} version={version} />
        {state.total === 0 && document !== null && (
          <p class="dim">{state.ended === null ? "No calls yet." : "No calls."}</p>
        )}
        {state.ended === null && document !== null && <Actions api={api} runId={runId} status={status} run={run} />}
        <Waiting api={api} runId={runId} state={state} version={version} />
        <Failures
          state={state}
          version={version}
          retry={state.ended === null ? retry : undefined}
          isRetrying={isRetrying.value}
        />
        <Graphs
          state={state}
          nowMs={nowMs}
          version={version}
          load={outlineFrom(api, runId)}
          named={run.draw}
          retry={state.ended === null ? retry : undefined}
        />
        <Timeline
          state={state}
          nowMs={nowMs}
          version={version}
          limits={[...widthOf(document), ...gates.value]}
          look={lookFrom(api, runId)}
        />
        <Children state={state} version={version} api={api} />
        <Downloads api={api} runId={runId} refused={run.refused} />
      </main>
    </>
  );
}
