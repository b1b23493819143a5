/** The page at `/ui` and `/ui/runs/:id`, and the same as a file. */
import { render } from "preact";
import { Api } from "./api.ts";
import { credential } from "./credential.ts";
import { savedRun } from "./saved.ts";
import { SavedPage } from "./view/saved-page.tsx";
import { RunPage } from "./view/run-page.tsx";
import { SignIn } from "./view/sign-in.tsx";
import { StartPage } from "./view/start/start-page.tsx";

const saved = savedRun();

function Page() {
  if (saved !== null) return <SavedPage run={saved} />;
  const runId = /^\/ui\/runs\/([^/]+)\/?$/.exec(location.pathname)?.[1];
  if (credential.value === null) return <SignIn isRun={runId !== undefined} problem={null} />;
  const api = new Api(credential.value);
  return runId === undefined ? <StartPage api={api} /> : <RunPage api={api} runId={decodeURIComponent(runId)} />;
}

const root = document.getElementById("page");
// The document shows that it loads until here.
root?.replaceChildren();
if (root !== null) render(<Page />, root);
