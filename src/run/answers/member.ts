/** One slot of a group, as a rule over its answers sees it. What was cancelled or skipped is no member. */
export type Member = {
  index: number;
  /** The client's id of the call; null = it has none. */
  id: string | null;
  /** False: the slot failed. An error is never an answer. */
  completed: boolean;
  /** The answer; empty if the slot failed. */
  text: string;
};
