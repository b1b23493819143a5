/** The page at `/ui` and `/ui/runs/:id`. */
import { render } from "preact";
import { Api } from "./api.ts";
import { credential } from "./credential.ts";
import { RunPage } from "./view/run-page.tsx";
import { RunsPage } from "./view/runs-page.tsx";
import { SignIn } from "./view/sign-in.tsx";

function Page() {
  const runId = /^\/ui\/runs\/([^/]+)\/?$/.exec(location.pathname)?.[1];
  if (credential.value === null) return <SignIn isRun={runId !== undefined} problem={null} />;
  const api = new Api(credential.value);
  return runId === undefined ? <RunsPage api={api} /> : <RunPage api={api} runId={decodeURIComponent(runId)} />;
}

const root = document.getElementById("page");
if (root !== null) render(<Page />, root);
