/** The commands of `fanout`. Each is loaded when it is used. To add one, add a row. */

/**
 * What every command gets. `stdout` and `stderr` write text; `signal` aborts when the user stops the command. `isLive`: standard
 * error is a terminal, so that progress is shown; `isScreen`: standard output is one, so that it can be cleared.
 * `read`: the text of a file, null if there is none.
 * @typedef {{
 *   env: Record<string, string | undefined>, read: (path: string) => string | null, stdout: (text: string) => void, stderr: (text: string) => void,
 *   columns: () => number, isLive: boolean, isScreen: boolean, signal: AbortSignal,
 * }} Surroundings
 */

/** @typedef {(args: string[], surroundings: Surroundings) => Promise<number>} Command Returns the exit status. */

/** @type {Record<string, { summary: string, load: () => Promise<Command> }>} */
export const COMMANDS = {
  run: {
    summary: "run FILE        run a workflow script under a budget",
    load: async () => (await import("./script/run.mjs")).run,
  },
  batch: {
    summary: "batch INPUT     send a file of prompts as one batch",
    load: async () => (await import("./batch/command.mjs")).batch,
  },
  watch: {
    summary: "watch RUN       show the events of a run as they happen",
    load: async () => (await import("./runs/watch.mjs")).watch,
  },
  runs: {
    summary: "runs            list runs, all or those that fit a filter",
    load: async () => (await import("./runs/runs.mjs")).runs,
  },
  top: {
    summary: "top             show what all active runs and upstreams are doing",
    load: async () => (await import("./runs/top.mjs")).top,
  },
  trace: {
    summary: "trace RUN       save the trace of a run for ui.perfetto.dev",
    load: async () => (await import("./runs/trace.mjs")).trace,
  },
  cassette: {
    summary: "cassette        record the answers that a program gets, and replay them without a provider",
    load: async () => (await import("./cassette/command.mjs")).cassette,
  },
};

export const USAGE = `fanout: many LLM calls under a hard budget

Usage: fanout COMMAND [options]

${Object.values(COMMANDS)
  .map(({ summary }) => `  ${summary}`)
  .join("\n")}

The gateway is --url, or FANOUT_URL (default http://127.0.0.1:8787). The credential is FANOUT_TOKEN,
a run's token, or ADMIN_KEY, the operator's key: from --token-file, else from the environment, else
from --env-file or .dev.vars, into which npm start writes the operator's key. runs, top and
cassette need the operator's key, batch a run's token.
For the options of a command: fanout COMMAND --help
`;
