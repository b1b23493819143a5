/** `npm run watch -- RUN_ID`: shows the events of a run on the terminal. The exit status is 0 when the run has ended. */
import { readText } from "../cli/credential.ts";
import { showRun } from "../cli/watch/show.ts";

const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => stop.abort());

process.exitCode = await showRun(process.argv.slice(2), {
  env: process.env,
  read: readText,
  stderr: (text) => void process.stderr.write(text),
  signal: stop.signal,
});
