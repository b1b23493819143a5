/** The page of one run: loads its document, follows its log, and draws what both say. */
import { batch, signal, useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { ApiError, type Api, type Json } from "../api.ts";
import { callNames } from "../call-names.ts";
import { follow } from "../follow.ts";
import { isRecord, numberOf, objectOf, textOf } from "../model/line.ts";
import { paced, type Pace } from "../model/paced.ts";
import { addressOfWanted, wantedIn, type Wanted } from "../model/rows.ts";
import { RunState, type Failures } from "../model/run-state.ts";
import { queueLooks } from "../queue-looks.ts";
import { Actions } from "./actions.tsx";
import { Children } from "./children.tsx";
import { Export } from "./export.tsx";
import { Facts } from "./facts.tsx";
import { FailureList } from "./failures.tsx";
import { Graphs } from "./graph/graph-section.tsx";
import { PageHeader } from "./page-header.tsx";
import { SignIn } from "./sign-in.tsx";
import type { Limit } from "./timeline-canvas.ts";
import { Timeline } from "./timeline.tsx";
import { useCallSearch } from "./use-call-search.ts";

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
  /** Whether the log has arrived as far as it goes: before, no figure of it is true. */
  const isLoaded = signal(false);
  const problem = signal<ApiError | null>(null);
  const stop = new AbortController();
  const queue = queueLooks(api, runId);
  const isBusy = (): boolean => state.ended === null && state.endedCalls < state.total;
  const draw = paced(() => {
    queue.changed(isBusy());
    names();
    version.value += 1;
  }, BROWSER);
  const names = callNames(api, runId, state, () => draw());
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
        isLoaded.value = true;
        draw();
      },
      connected: (now: boolean) => void (isConnected.value = now),
    };
    follow(api, runId, follower, stop.signal)
      .then(load)
      .catch(refused)
      .finally(() => batch(() => (isConnected.value = false)));
  };
  const end = (): void => {
    stop.abort();
    queue.stop();
  };
  const shown = { state, version, document, isConnected, isLoaded, problem, queue: queue.look };
  return { ...shown, load, draw, refused, start, stop: end };
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
  const now = useSignal(api.now());
  const wanted = useSignal(wantedIn(location.search));
  const want = (next: Wanted): void => {
    wanted.value = next;
    history.replaceState(null, "", location.pathname + addressOfWanted(next));
  };
  const searching = useCallSearch(api, runId, wanted.value.text);
  useEffect(() => {
    run.start();
    const clock = setInterval(() => void (now.value = api.now()), 1_000);
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
  const showCause = ({ code, upstream }: Failures): void => {
    want({ shown: "failed", text: "", cause: { code, upstream } });
    document.getElementById("timeline")?.scrollIntoView({ block: "start" });
    document.querySelector<HTMLElement>("#timeline .rows")?.focus({ preventScroll: true });
  };
  const problem = run.problem.value;
  const { state } = run;
  const gates = useGateWidths(api, state.upstreams);
  if (problem?.status === 401 || problem?.status === 403) return <SignIn isRun problem={problem.message} />;
  const version = run.version.value;
  const known = run.document.value;
  // The document knows of calls whose events have not arrived.
  const hasCalls = known !== null && numberOf(objectOf(known, "stats"), "total_queries") > 0;
  const isLoaded = run.isLoaded.value && known !== null && (state.total > 0 || !hasCalls);
  const status = state.ended ?? (known === null ? null : (textOf(known, "status") ?? "active"));
  // Time goes on while calls have not ended; else figures of time end with the last event.
  const isBusy = state.ended === null && state.endedCalls < state.total;
  const nowMs = isBusy ? Math.max(now.value, state.lastMs) : state.lastMs;
  const retryOpen = state.ended === null ? retry : undefined;
  return (
    <>
      <RunHeader api={api} runId={runId} run={run} version={version} status={status} isBusy={isBusy} />
      <main>
        {problem !== null && (
          <p class="problem" role="alert">
            {problem.message}
          </p>
        )}
        {(problem === null || isLoaded) && (
          <Facts
            state={state}
            version={version}
            document={known}
            queue={run.queue.value}
            nowMs={isBusy ? nowMs : now.value}
            isLoaded={isLoaded}
          />
        )}
        {isLoaded && state.total === 0 && (
          <p class="dim">{state.ended === null ? "No calls yet." : "It made no calls."}</p>
        )}
        <FailureList state={state} version={version} show={showCause} retry={retryOpen} isRetrying={isRetrying.value} />
        <Graphs
          state={state}
          nowMs={nowMs}
          version={version}
          load={outlineFrom(api, runId)}
          named={run.draw}
          retry={retryOpen}
        />
        <Timeline
          state={state}
          nowMs={nowMs}
          version={version}
          limits={[...widthOf(known), ...gates]}
          look={lookFrom(api, runId)}
          wanted={wanted.value}
          want={want}
          searching={searching}
        />
        <Children api={api} runId={runId} state={state} version={version} nowMs={now.value} />
      </main>
    </>
  );
}

/** The widths of the keys that the run's calls go to. The curve is of use without them. */
function useGateWidths(api: Api, upstreams: ReadonlySet<string>): readonly Limit[] {
  const gates = useSignal<Limit[]>([]);
  useEffect(() => {
    if (!api.isOperator) return;
    gateWidths(api, upstreams)
      .then((widths) => void (gates.value = widths))
      .catch(() => undefined);
  }, [api, upstreams.size]);
  return gates.value;
}

type HeaderProps = {
  api: Api;
  runId: string;
  run: ReturnType<typeof followed>;
  version: number;
  status: string | null;
  isBusy: boolean;
};

function RunHeader({ api, runId, run, version, status, isBusy }: HeaderProps) {
  const known = run.document.value;
  const { state } = run;
  const parentId = textOf(known ?? {}, "parent_id");
  const parent = useParentName(api, parentId);
  const name = textOf(known ?? {}, "name");
  const isOpen = state.ended === null && known !== null;
  const activity = state.ended !== null ? "ended" : isBusy ? "working" : "idle";
  const text = status === "active" ? activity : (status ?? "loading …");
  return (
    <PageHeader>
      {parentId !== null && (
        <a href={`/ui/runs/${encodeURIComponent(parentId)}`} class="crumb">
          {parent ?? "parent run"}
        </a>
      )}
      <h1>
        {name ?? "Run"} <code title={runId}>{runId.length > 16 ? `${runId.slice(0, 12)}…` : runId}</code>
      </h1>
      <span class={status === null ? "dim" : `state ${activity} ${status}`}>{text}</span>
      <span class="dim" aria-live="polite">
        {isOpen ? (run.isConnected.value ? "live" : "connecting …") : ""}
      </span>
      <Export api={api} runId={runId} state={state} version={version} refused={run.refused} />
      {isOpen && <Actions api={api} runId={runId} status={status ?? "active"} run={run} />}
    </PageHeader>
  );
}

/** The name of the run above; null while it is not known, or if this credential may not see it. */
function useParentName(api: Api, parentId: string | null): string | null {
  const name = useSignal<string | null>(null);
  useEffect(() => {
    if (parentId === null) return;
    api
      .json(`/runs/${encodeURIComponent(parentId)}`)
      .then((parent) => void (name.value = textOf(parent, "name")))
      .catch(() => undefined);
  }, [api, parentId]);
  return name.value;
}
