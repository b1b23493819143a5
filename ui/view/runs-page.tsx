/** The operator's list of root runs, newest first. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiError, type Api, type Json } from "../api.ts";
import { signOut } from "../credential.ts";
import { countText, usdText } from "../model/format.ts";
import { isRecord, numberOf, objectOf, textOf } from "../model/line.ts";
import { SignIn } from "./sign-in.tsx";

const PAGE = 50;

export function RunsPage({ api }: { api: Api }) {
  const runs = useSignal<Json[]>([]);
  const cursor = useSignal<string | null>(null);
  const problem = useSignal<ApiError | null>(null);
  const wanted = useSignal("");
  const load = async (): Promise<void> => {
    try {
      const after = cursor.value === null ? "" : `&cursor=${encodeURIComponent(cursor.value)}`;
      const page = await api.json(`/runs?limit=${PAGE}${after}`);
      const data = Array.isArray(page["data"]) ? page["data"].filter(isRecord) : [];
      runs.value = [...runs.value, ...data];
      cursor.value = page["has_more"] === true ? textOf(page, "next_cursor") : null;
    } catch (error) {
      problem.value = error instanceof ApiError ? error : new ApiError(0, String(error));
    }
  };
  useEffect(() => void load(), [api]);
  if (problem.value?.status === 401 || problem.value?.status === 403) {
    return <SignIn isRun={false} problem={problem.value.message} />;
  }
  const text = wanted.value.toLowerCase();
  const shown = runs.value.filter((run) =>
    [textOf(run, "id"), textOf(run, "name"), textOf(run, "status")].some((value) =>
      value?.toLowerCase().includes(text),
    ),
  );
  return (
    <>
      <header>
        <span class="home">fanout</span>
        <h1>Runs</h1>
        <input
          type="search"
          aria-label="Filter by name, id or status"
          placeholder="name, id or status"
          onInput={(event) => void (wanted.value = event.currentTarget.value)}
        />
        <button type="button" class="quiet" onClick={signOut}>
          Forget credential
        </button>
      </header>
      <main>
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
            <tbody>{shown.map((run) => runRow(run))}</tbody>
          </table>
        </div>
        {cursor.value !== null && (
          <button type="button" onClick={() => void load()}>
            Show more
          </button>
        )}
        {runs.value.length === 0 && problem.value === null && <p class="dim">No runs yet.</p>}
      </main>
    </>
  );
}

function runRow(run: Json) {
  const id = textOf(run, "id") ?? "";
  const budget = objectOf(run, "budget");
  const usd = objectOf(budget, "usd");
  const status = textOf(run, "status") ?? "";
  const limit = usd["limit"];
  return (
    <tr key={id}>
      <td>
        <a href={`/ui/runs/${encodeURIComponent(id)}`}>{textOf(run, "name") ?? <code>{id.slice(0, 20)}…</code>}</a>
      </td>
      <td>
        <span class={`status ${status}`}>{status}</span>
      </td>
      <td>{textOf(run, "created_at")?.replace("T", " ").slice(0, 19)}</td>
      <td class="number">{countText(numberOf(objectOf(budget, "calls"), "spent"))}</td>
      <td class="number">{usdText(numberOf(usd, "spent"))}</td>
      <td class="number">{typeof limit === "number" ? usdText(limit) : "–"}</td>
    </tr>
  );
}
