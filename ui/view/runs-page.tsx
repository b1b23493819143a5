/** The operator's list of root runs, newest first. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiError, type Api, type Json } from "../api.ts";
import { signOut } from "../credential.ts";
import { countText, usdText } from "../model/format.ts";
import { isRecord, numberOf, objectOf, textOf } from "../model/line.ts";
import { Below } from "./children.tsx";
import { SignIn } from "./sign-in.tsx";

const PAGE = 50;
const STATES = ["active", "paused", "closed", "cancelled", "expired", "escalated"];

/** The parameters of `GET /runs` that a form has set. */
function filtersIn(form: HTMLFormElement): string {
  const query = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    const text = typeof value === "string" ? value.trim() : "";
    if (text === "") continue;
    // A field of a form has the reader's time, and the gateway takes that of the world.
    query.set(name, name.startsWith("opened_") ? new Date(text).toISOString() : text);
  }
  return query.toString();
}

export function RunsPage({ api }: { api: Api }) {
  const runs = useSignal<Json[]>([]);
  const cursor = useSignal<string | null>(null);
  const problem = useSignal<ApiError | null>(null);
  const filters = useSignal("");
  const load = async (): Promise<void> => {
    const asked = filters.value;
    try {
      const after = cursor.value === null ? "" : `&cursor=${encodeURIComponent(cursor.value)}`;
      const page = await api.json(`/runs?limit=${PAGE}${after}${asked === "" ? "" : `&${asked}`}`);
      // Another filter was set meanwhile.
      if (asked !== filters.value) return;
      const data = Array.isArray(page["data"]) ? page["data"].filter(isRecord) : [];
      const unread = Array.isArray(page["unread"]) ? page["unread"].filter(isRecord) : [];
      runs.value = [...runs.value, ...data, ...unread];
      cursor.value = page["has_more"] === true ? textOf(page, "next_cursor") : null;
      problem.value = null;
    } catch (error) {
      problem.value = error instanceof ApiError ? error : new ApiError(0, String(error));
    }
  };
  useEffect(() => {
    runs.value = [];
    cursor.value = null;
    void load();
  }, [api, filters.value]);
  if (problem.value?.status === 401 || problem.value?.status === 403) {
    return <SignIn isRun={false} problem={problem.value.message} />;
  }
  return (
    <>
      <header>
        <span class="home">fanout</span>
        <h1>Runs</h1>
        <button type="button" class="quiet" onClick={signOut}>
          Forget credential
        </button>
      </header>
      <main>
        <Filters apply={(query) => void (filters.value = query)} />
        {problem.value !== null && (
          <p class="problem" role="alert">
            {problem.value.message}
          </p>
        )}
        <div class="scroll">
          <table>
            <thead>
              <tr>
                <th>run</th>
                <th>status</th>
                <th>opened</th>
                <th class="number">calls</th>
                <th class="number">spent</th>
                <th class="number">limit</th>
              </tr>
            </thead>
            <tbody>{runs.value.map((run) => runRow(api, run))}</tbody>
          </table>
        </div>
        {cursor.value !== null && (
          <button type="button" onClick={() => void load()}>
            Show more
          </button>
        )}
        {runs.value.length === 0 && cursor.value === null && problem.value === null && (
          <p class="dim">{filters.value === "" ? "No runs yet." : "No such runs."}</p>
        )}
      </main>
    </>
  );
}

/** State, name, time and spend. The gateway filters, so that runs of later pages are found as well. */
function Filters({ apply }: { apply: (query: string) => void }) {
  return (
    <form
      class="actions"
      role="search"
      aria-label="Filters"
      onSubmit={(event) => {
        event.preventDefault();
        apply(filtersIn(event.currentTarget));
      }}
    >
      <label>
        name <input name="name" type="search" maxLength={128} />
      </label>
      <label>
        state{" "}
        <select name="status" onChange={(event) => event.currentTarget.form?.requestSubmit()}>
          <option value="">any</option>
          {STATES.map((state) => (
            <option value={state}>{state}</option>
          ))}
        </select>
      </label>
      <label>
        opened after <input name="opened_after" type="datetime-local" />
      </label>
      <label>
        before <input name="opened_before" type="datetime-local" />
      </label>
      <label>
        spent from $ <input name="spent_usd_min" type="number" min="0" step="any" />
      </label>
      <label>
        to $ <input name="spent_usd_max" type="number" min="0" step="any" />
      </label>
      <button type="submit">Filter</button>
    </form>
  );
}

/** A run that the list could not read: its id, when it was opened, and why. */
function unreadRow(run: Json, { id, code }: { id: string; code: string }) {
  return (
    <tr key={id}>
      <td>
        <code>{id.slice(0, 20)}…</code>
      </td>
      <td>
        <span class="status">{code}</span>
      </td>
      <td>
        <time>{textOf(run, "created_at")?.replace("T", " ").slice(0, 19)}</time>
      </td>
      <td colSpan={3}>{textOf(run, "message")}</td>
    </tr>
  );
}

function runRow(api: Api, run: Json) {
  const id = textOf(run, "id") ?? "";
  const code = textOf(run, "code");
  if (code !== null) return unreadRow(run, { id, code });
  const budget = objectOf(run, "budget");
  const usd = objectOf(budget, "usd");
  const status = textOf(run, "status") ?? "";
  const limit = usd["limit"];
  return (
    <tr key={id}>
      <td>
        <Below api={api} runId={id} />
        <a href={`/ui/runs/${encodeURIComponent(id)}`}>{textOf(run, "name") ?? <code>{id.slice(0, 20)}…</code>}</a>
      </td>
      <td>
        <span class={`status ${status}`}>{status}</span>
      </td>
      <td>
        <time>{textOf(run, "created_at")?.replace("T", " ").slice(0, 19)}</time>
      </td>
      <td class="number">{countText(numberOf(objectOf(budget, "calls"), "spent"))}</td>
      <td class="number">{usdText(numberOf(usd, "spent"))}</td>
      <td class="number">{typeof limit === "number" ? usdText(limit) : "–"}</td>
    </tr>
  );
}
