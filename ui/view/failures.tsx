import { callsText } from "../model/format.ts";
import { nameOf } from "../model/call.ts";
import type { Versioned } from "./figure.tsx";
import type { Failures, GroupState, RunState } from "../model/run-state.ts";

/** Groups that can be retried here: the last ones. */
const RETRIED_MAX = 5;

/** `retry`: makes the calls of a group once more that did not complete; absent = the run takes no more calls. */
type Props = Versioned & {
  /** Leads to the rows of a cause. */
  show: (cause: Failures) => void;
  retry?: ((id: string) => void) | undefined;
  isRetrying?: boolean;
};

/** Failed calls by cause, the commonest first, each with its first example; and the groups that lack answers. */
export function FailureList({ state, show, retry, isRetrying = false }: Props) {
  const lacking = retry === undefined ? [] : retriableOf(state);
  if (state.failures.size === 0 && lacking.length === 0) return null;
  const causes = [...state.failures.values()].toSorted((a, b) => b.count - a.count);
  return (
    <section aria-label="Failures">
      <h2>{causes.length === 0 ? "Answers that are missing" : `${callsText(state.counts.failed)} failed`}</h2>
      <ul class="causes">
        {causes.map((cause) => (
          <li key={`${cause.code} ${cause.upstream}`}>
            <button type="button" onClick={() => show(cause)}>
              Show {callsText(cause.count)}
            </button>{" "}
            <b class="bad">{cause.code}</b> <span class="dim">{cause.upstream}</span>
            <p>
              {nameOf(cause.call)}: {cause.example}
            </p>
          </li>
        ))}
      </ul>
      {lacking.map(({ id }) => (
        <p key={id}>
          <button type="button" disabled={isRetrying} onClick={() => retry?.(id)}>
            Retry what did not complete of {id}
          </button>
        </p>
      ))}
    </section>
  );
}

/** Batches that have ended without all of their answers and that nobody has retried; graphs have a button of their own. */
function retriableOf({ groups }: RunState): GroupState[] {
  const all = [...groups.values()];
  const retried = new Set(all.map(({ retryOf }) => retryOf));
  const isLacking = ({ endMs, status }: GroupState): boolean => endMs !== null && status !== "completed";
  // Single calls that arrived together have no index, and are no group that can be asked for.
  const isBatch = ({ tasks, calls }: GroupState): boolean =>
    tasks === null && calls.every(({ index }) => index !== null);
  return all.filter((group) => isLacking(group) && isBatch(group) && !retried.has(group.id)).slice(-RETRIED_MAX);
}
