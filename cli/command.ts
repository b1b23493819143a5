/** A command, and what it gets. */

/**
 * What every command gets. `stdout` and `stderr` write text; `signal` aborts when the user stops the command. `isLive`: standard
 * error is a terminal, so that progress is shown; `isScreen`: standard output is one, so that it can be cleared.
 * `read`: the text of a file, null if there is none.
 */
export type Surroundings = {
  env: Record<string, string | undefined>;
  read: (path: string) => string | null;
  stdout: (text: string) => void;
  stderr: (text: string) => void;
  columns: () => number;
  isLive: boolean;
  isScreen: boolean;
  signal: AbortSignal;
};

/** Runs a command with its arguments; resolves with the exit status. */
export type Command = (args: string[], surroundings: Surroundings) => Promise<number>;
