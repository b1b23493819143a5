/** A variable that has a credential. */
export type Name = "FANOUT_TOKEN" | "ADMIN_KEY" | "OPENAI_API_KEY";

export type Asked = {
  /** The variables that will do, best first. */
  names: readonly Name[];
  /** `--token-file`: a file that has the token or key and nothing else. */
  tokenFile?: string | undefined;
  /** `--env-file`, in order: the last one that has the name counts. */
  envFiles?: readonly string[] | undefined;
  /** Whether `.dev.vars` of the clone is read after them. Default true. */
  readsDevVars?: boolean;
};

export type Places = {
  env: Record<string, string | undefined>;
  /** The text of a file; null if it cannot be read. */
  read: (path: string) => string | null;
};

export type Credential = {
  value: string;
  name: Name | "--token-file";
  /** Where it was found, for people: a variable of the environment, a token file, or `ADMIN_KEY in .dev.vars`. */
  from: string;
  /** Whether it is the token of a run: a run token reads its own run, the operator's key names one. */
  isRunToken: boolean;
};

/** Path of the env file of a clone, into which `npm start` writes the operator's key. */
export const DEV_VARS: string;

/** The text of a file; null if it cannot be read. */
export function readText(path: string): string | null;

/** The credential, by the one rule of all commands; otherwise a sentence that says where it was looked for and what to do. */
export function findCredential(asked: Asked, places: Places): Credential | string;
