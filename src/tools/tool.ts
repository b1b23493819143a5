/** A tool of a run: an HTTP address that the gateway calls for the run's code, which never sees it. */
export type Tool = {
  name: string;
  /** As the URL parser writes it: what was checked is what is fetched. */
  url: string;
  description: string | null;
  /** JSON Schema of its input, as JSON text; absent = any input. */
  parametersJson?: string;
  /** Whether a call may be repeated after its connection is lost: the effect of the first one is unknown. */
  idempotent: boolean;
  /** Time limit of one call, both tries of an idempotent tool together. */
  timeoutMs: number;
};
