/** The start page: what works now, what failed, what is limited, what was spent, and the root runs. */
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { Api } from "../../api.ts";
import { addressOf, viewIn, type Filters, type Sorting } from "../../model/runs/filters.ts";
import { watchRuns } from "../../watch-runs.ts";
import { PageHeader } from "../page-header.tsx";
import { SignIn } from "../sign-in.tsx";
import { Keys } from "./keys.tsx";
import { Now } from "./now.tsx";
import { RunsSection } from "./runs-section.tsx";
import { Spend } from "./spend.tsx";

/** The reader's midnight: what was spent today is what was spent since then. */
function midnight(): string {
  const now = new Date();
  return new Date(now.getFullYear(), now.getMonth(), now.getDate()).toISOString();
}

export function StartPage({ api }: { api: Api }) {
  const watched = useMemo(() => watchRuns(api, midnight), [api]);
  const view = useSignal(viewIn(location.search));
  const nowMs = useSignal(api.now());
  useEffect(() => {
    void watched.start();
    const clock = setInterval(() => void (nowMs.value = api.now()), 1_000);
    const back = (): void => void (view.value = viewIn(location.search));
    addEventListener("popstate", back);
    return () => {
      clearInterval(clock);
      removeEventListener("popstate", back);
      watched.stop();
    };
  }, [watched]);
  const problem = watched.problem.value;
  if (problem?.status === 401 || problem?.status === 403) return <SignIn isRun={false} problem={problem.message} />;
  const show = (filters: Filters, sorting: Sorting): void => {
    view.value = { filters, sorting };
    history.replaceState(null, "", location.pathname + addressOf(filters, sorting));
  };
  return (
    <>
      <PageHeader>
        <h1>Runs</h1>
      </PageHeader>
      <main>
        {problem !== null && (
          <p class="problem" role="alert">
            {problem.message}
          </p>
        )}
        <Now overview={watched.overview.value} />
        <Keys
          api={api}
          keys={watched.keys.value}
          nowMs={nowMs.value}
          refused={(error) => void (watched.problem.value = error)}
        />
        <Spend overview={watched.overview.value} nowMs={nowMs.value} />
        <RunsSection api={api} watched={watched} view={view.value} show={show} nowMs={nowMs.value} />
      </main>
    </>
  );
}
