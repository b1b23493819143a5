/**
 * The client's ids of calls in the log. An event names a slot by its index; its id, of an item or of the task of a graph, is stored once,
 * with its group. So a line gets it when it is read, and no row of the log repeats it.
 */
import { groupSalt, groupSeqOfId } from "../../../src/run/queue/group-id.ts";
import type { CompiledGraph, CompiledTask } from "../../../src/run/graph/types.ts";
import { LOG_NAMED_GROUPS_MAX } from "../../../src/limits.ts";
import { BoundedMap } from "../../../src/renewed/bounded-map.ts";
import { customIdsOf } from "../groups/custom-ids.ts";
import type { GroupRows } from "../store/groups.ts";

type Groups = Pick<GroupRows, "get" | "factsOf" | "graphJson">;
type IdOf = (index: number) => string | null;

/** How the line of an event about a slot begins, as `RunLog` writes it. Events of clients have no index there. */
const SLOT_HEAD = /^\{"atMs":[^,]+,"group":"(?<group>[^"]+)","event":"\w+","index":(?<index>\d+),/;

const NO_ID: IdOf = () => null;

export class ItemIds {
  readonly #groups: Groups;
  readonly #runId: () => string | null;
  readonly #known = new BoundedMap<string, IdOf>(LOG_NAMED_GROUPS_MAX);

  /** `runId`: of the run whose log it is; null while there is none. */
  constructor(groups: Groups, runId: () => string | null) {
    this.#groups = groups;
    this.#runId = runId;
  }

  /** A stored line with the id of the call that it is about, if its client has given it one. */
  readonly added = (line: string): string => {
    const { group, index } = SLOT_HEAD.exec(line)?.groups ?? {};
    if (group === undefined || index === undefined) return line;
    const id = this.#idsOf(group)(Number(index));
    return id === null ? line : `${line.slice(0, -1)},"itemId":${JSON.stringify(id)}}`;
  };

  #idsOf(groupId: string): IdOf {
    const known = this.#known.get(groupId);
    if (known !== undefined) return known;
    const runId = this.#runId();
    const seq = runId === null ? null : groupSeqOfId(groupId, groupSalt(runId));
    const stored = seq === null ? undefined : this.#groups.get(seq)?.stored;
    if (stored?.header.id !== groupId) return NO_ID;
    const { graph } = stored.header;
    const isGraph = graph !== undefined && graph.ordersOnly !== true;
    const idOf = isGraph ? this.#taskIds(stored.header.seq) : customIdsOf(this.#groups, stored);
    this.#known.set(groupId, idOf);
    return idOf;
  }

  /** The tasks of a graph by the indexes of their slots. A changed graph has more of them; those that it had keep their slots. */
  #taskIds(seq: number): IdOf {
    let tasks: readonly TaskPlace[] = [];
    let slots = 0;
    return (index) => {
      if (index >= slots) {
        // Written by this object from its own graph.
        const graph: Pick<CompiledGraph, "tasks" | "slots"> = JSON.parse(this.#groups.graphJson(seq) ?? NO_GRAPH);
        tasks = graph.tasks.map(({ id, first }) => ({ id, first }));
        ({ slots } = graph);
      }
      return tasks[lastUpTo(tasks, index)]?.id ?? null;
    };
  }
}

const NO_GRAPH = '{"tasks":[],"slots":0}';

type TaskPlace = Pick<CompiledTask, "id" | "first">;

/** The position of the task that has a slot: tasks are in the order of their slots. */
function lastUpTo(tasks: readonly TaskPlace[], index: number): number {
  let [from, to] = [0, tasks.length];
  while (to - from > 1) {
    const middle = (from + to) >> 1;
    if ((tasks[middle]?.first ?? 0) <= index) from = middle;
    else to = middle;
  }
  return from;
}
