import { useSignal } from "@preact/signals";
import type { Api, Json } from "../api.ts";
import { numberOf, objectOf } from "../model/line.ts";

type Run = { document: { value: Json | null }; load: () => Promise<void>; refused: (error: unknown) => void };

/** What can be done to an open run: anyone with its token may cancel it; only the operator may pause it or raise its limit. */
export function Actions({ api, runId, status, run }: { api: Api; runId: string; status: string; run: Run }) {
  const isBusy = useSignal(false);
  const path = `/runs/${encodeURIComponent(runId)}`;
  const act = (method: string, body?: Json) => async () => {
    isBusy.value = true;
    try {
      await api.json(path, { method, ...(body === undefined ? {} : { body }) });
      await run.load();
    } catch (error) {
      run.refused(error);
    } finally {
      isBusy.value = false;
    }
  };
  const usd = objectOf(objectOf(run.document.value ?? {}, "budget"), "usd");
  const limit = typeof usd["limit"] === "number" ? numberOf(usd, "limit") : null;
  const isPaused = status === "paused";
  return (
    <details class="menu">
      <summary>Manage</summary>
      <div role="group" aria-label="Actions">
        {api.isOperator && (
          <button type="button" disabled={isBusy.value} onClick={act("PATCH", { paused: !isPaused })}>
            {isPaused ? "Resume" : "Pause"}
          </button>
        )}
        {api.isOperator && limit !== null && (
          <form
            onSubmit={(event) => {
              event.preventDefault();
              const more = Number(new FormData(event.currentTarget).get("usd"));
              if (more > 0) void act("PATCH", { budget: { usd: limit + more } })();
            }}
          >
            <label>
              Top up by $ <input name="usd" type="number" min="0.000001" step="any" required />
            </label>
            <button type="submit" disabled={isBusy.value}>
              Top up
            </button>
          </form>
        )}
        <button
          type="button"
          disabled={isBusy.value}
          onClick={() => {
            if (confirm("Cancel this run? Its calls in flight are aborted, and it accepts no others."))
              void act("DELETE")();
          }}
        >
          Cancel run
        </button>
      </div>
    </details>
  );
}
