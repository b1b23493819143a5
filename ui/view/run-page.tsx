/** The page of one run: loads its document, follows its log, and draws what both say. */
import { batch, signal, useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { ApiError, type Api, type Json } from "../api.ts";
import { signOut } from "../credential.ts";
import { follow } from "../follow.ts";
import { textOf } from "../model/line.ts";
import { RunState } from "../model/run-state.ts";
import { Actions } from "./actions.tsx";
import { Children } from "./children.tsx";
import { Downloads } from "./downloads.tsx";
import { Failures } from "./failures.tsx";
import { Money } from "./money.tsx";
import { ProgressLine } from "./progress.tsx";
import { SignIn } from "./sign-in.tsx";
import { Timeline } from "./timeline.tsx";
import { Waiting } from "./waiting.tsx";

/** The page is drawn at most this often, however fast the log grows. */
const FRAME_MS = 100;

/** What is shown, and a number that grows whenever it has changed. */
function followed(api: Api, runId: string) {
  const state = new RunState();
  const version = signal(0);
  const document = signal<Json | null>(null);
  const isConnected = signal(false);
  const problem = signal<ApiError | null>(null);
  const stop = new AbortController();
  let drawAt: ReturnType<typeof setTimeout> | null = null;
  const draw = (): void => {
    drawAt ??= setTimeout(() => {
      drawAt = null;
      version.value += 1;
    }, FRAME_MS);
  };
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
  return { state, version, document, isConnected, problem, load, refused, start, stop: () => stop.abort() };
}

export function RunPage({ api, runId }: { api: Api; runId: string }) {
  const run = useMemo(() => followed(api, runId), [api, runId]);
  const now = useSignal(Date.now());
  useEffect(() => {
    run.start();
    const clock = setInterval(() => void (now.value = Date.now()), 1_000);
    return () => {
      clearInterval(clock);
      run.stop();
    };
  }, [run]);
  const problem = run.problem.value;
  if (problem?.status === 401 || problem?.status === 403) return <SignIn isRun problem={problem.message} />;
  const { state } = run;
  const version = run.version.value;
  const document = run.document.value;
  const status = state.ended ?? (document === null ? "loading" : (textOf(document, "status") ?? "active"));
  // Time goes on while calls have not ended; else it ends with the last event.
  const isBusy = state.ended === null && state.endedCalls < state.total;
  const nowMs = isBusy ? Math.max(now.value, state.lastMs) : state.lastMs;
  const name = document === null ? null : textOf(document, "name");
  return (
    <>
      <header>
        <a href="/ui" class="home">
          fanout
        </a>
        <h1>
          {name ?? "Run"} <code>{runId}</code>
        </h1>
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
        {state.ended === null && document !== null && <Actions api={api} runId={runId} status={status} run={run} />}
        <Waiting api={api} runId={runId} state={state} version={version} />
        <Failures state={state} version={version} />
        <Timeline state={state} nowMs={nowMs} version={version} />
        <Children state={state} version={version} />
        <Downloads api={api} runId={runId} refused={run.refused} />
      </main>
    </>
  );
}
