/** A tool of a run: an HTTP address that the gateway calls for the run's code, which never sees it. */
export type Tool = {
  name: string;
  /** As the URL parser writes it: what was checked is what is fetched. */
  url: string;
  description: string | null;
  /** Whether a call may be made again when its connection is lost: nobody knows what the first one did. */
  idempotent: boolean;
  /** Time limit of one call, both tries of an idempotent tool together. */
  timeoutMs: number;
};
