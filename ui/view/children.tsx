/** The runs below a run. Each is read when a reader opens it, so that a large tree costs nothing by itself. */
import { useSignal } from "@preact/signals";
import type { Api, Json } from "../api.ts";
import { countText, usdText } from "../model/format.ts";
import { isRecord, numberOf, objectOf, textOf } from "../model/line.ts";
import type { Child, RunState } from "../model/run-state.ts";

/** The runs that this run has opened, as its log says it; with a gateway, what is below each of them. */
export function Children({ state, api = null }: { state: RunState; version: number; api?: Api | null }) {
  if (state.children.size === 0) return null;
  return (
    <section aria-label="Child runs">
      <h2>Child runs</h2>
      <ul class="tree">
        {[...state.children.values()].map((child) => (
          <li key={child.id}>
            {api !== null && <Below api={api} runId={child.id} />}
            <a href={`/ui/runs/${encodeURIComponent(child.id)}`}>
              <code>{child.id}</code>
            </a>{" "}
            {amountOf(child)}
          </li>
        ))}
      </ul>
    </section>
  );
}

function amountOf({ spentUsd, reservedUsd }: Child): string {
  return spentUsd === null ? `open, ${usdText(reservedUsd)} reserved` : `ended, ${usdText(spentUsd)} spent`;
}

type Page = { runs: readonly Json[]; cursor: string | null };

/** A button that shows the child runs of a run, each with such a button. */
export function Below({ api, runId }: { api: Api; runId: string }) {
  const page = useSignal<Page | null>(null);
  const isOpen = useSignal(false);
  const isBusy = useSignal(false);
  const load = async (): Promise<void> => {
    isBusy.value = true;
    try {
      const after = page.value?.cursor == null ? "" : `?cursor=${encodeURIComponent(page.value.cursor)}`;
      const json = await api.json(`/runs/${encodeURIComponent(runId)}/children${after}`);
      const listed = Array.isArray(json["data"]) ? json["data"].filter(isRecord) : [];
      page.value = { runs: [...(page.value?.runs ?? []), ...listed], cursor: textOf(json, "next_cursor") };
    } catch {
      // A run that is gone has nothing below it.
      page.value = { runs: [], cursor: null };
    } finally {
      isBusy.value = false;
    }
  };
  const toggle = (): void => {
    isOpen.value = !isOpen.value;
    if (isOpen.value && page.value === null) void load();
  };
  return (
    <>
      <button type="button" aria-expanded={isOpen.value} aria-label={`Child runs of ${runId}`} onClick={toggle}>
        {isOpen.value ? "−" : "+"}
      </button>
      {isOpen.value && page.value !== null && (
        <ul>
          {page.value.runs.map((run) => (
            <Node key={textOf(run, "id")} api={api} run={run} />
          ))}
          {page.value.runs.length === 0 && <li class="dim">no child runs</li>}
          {page.value.cursor !== null && (
            <li>
              <button type="button" disabled={isBusy.value} onClick={() => void load()}>
                Show more
              </button>
            </li>
          )}
        </ul>
      )}
    </>
  );
}

function Node({ api, run }: { api: Api; run: Json }) {
  const id = textOf(run, "id") ?? "";
  const status = textOf(run, "status") ?? "";
  const budget = objectOf(run, "budget");
  return (
    <li>
      <Below api={api} runId={id} />
      <a href={`/ui/runs/${encodeURIComponent(id)}`}>{textOf(run, "name") ?? <code>{id.slice(0, 20)}…</code>}</a>{" "}
      <span class={`status ${status}`}>{status}</span> {countText(numberOf(objectOf(budget, "calls"), "spent"))} calls,{" "}
      {usdText(numberOf(objectOf(budget, "usd"), "spent"))}
    </li>
  );
}
