/** The commands of `fanout`. Each is loaded when it is used. To add one, add a row. */

import type { Command } from "./command.ts";

export const COMMANDS: Record<string, { summary: string; load: () => Promise<Command> }> = {
  run: {
    summary: "run FILE        run a workflow script under a budget",
    load: async () => (await import("./script/run.ts")).run,
  },
  batch: {
    summary: "batch INPUT     send a file of prompts as one batch",
    load: async () => (await import("./batch/command.ts")).batch,
  },
  watch: {
    summary: "watch RUN       show the events of a run as they happen",
    load: async () => (await import("./runs/watch.ts")).watch,
  },
  runs: {
    summary: "runs            list runs, all or those that fit a filter",
    load: async () => (await import("./runs/runs.ts")).runs,
  },
  top: {
    summary: "top             show what all active runs and upstreams are doing",
    load: async () => (await import("./runs/top.ts")).top,
  },
  trace: {
    summary: "trace RUN       save the trace of a run for ui.perfetto.dev",
    load: async () => (await import("./runs/trace.ts")).trace,
  },
  cassette: {
    summary: "cassette        record the answers that a program gets, and replay them without a provider",
    load: async () => (await import("./cassette/command.ts")).cassette,
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
