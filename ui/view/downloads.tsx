import type { Api } from "../api.ts";

/** Saves the run's log, its trace, or this page. They need the credential, so they are fetched and no plain links. */
export function Downloads({ api, runId, refused }: { api: Api; runId: string; refused: (error: unknown) => void }) {
  const save = (file: string, name: string) => () => {
    api
      .file(`/runs/${encodeURIComponent(runId)}/${file}`)
      .then((blob) => saveAs(blob, name))
      .catch(refused);
  };
  return (
    <section class="actions" aria-label="Downloads">
      <button type="button" onClick={save("trace.json", `${runId}.trace.json`)}>
        Download trace
      </button>
      <button type="button" onClick={save("page.html", `${runId}.html`)}>
        Download page
      </button>
      <button type="button" onClick={save("log", `${runId}.jsonl`)}>
        Download log
      </button>
      <span class="dim">
        <a href="https://ui.perfetto.dev" rel="noreferrer">
          ui.perfetto.dev
        </a>{" "}
        opens the trace.
      </span>
    </section>
  );
}

function saveAs(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
