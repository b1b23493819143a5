/**
 * The client's ids of calls in the log, and their labels. An event names a slot by its index; its id, of an item or of the task of a graph,
 * and its labels are stored once, with its group. So a line gets them when it is read, and no row of the log repeats them.
 */
import { groupSalt, groupSeqOfId } from "../../../src/run/queue/group-id.ts";
import type { SlotName } from "../../../src/run/queue/call-page.ts";
import type { CompiledGraph, CompiledTask } from "../../../src/run/graph/types.ts";
import { LOG_NAMED_GROUPS_MAX } from "../../../src/limits.ts";
import { BoundedMap } from "../../../src/renewed/bounded-map.ts";
import { namesOf } from "../groups/custom-ids.ts";
import type { GroupRows } from "../store/groups.ts";

type Groups = Pick<GroupRows, "get" | "factsOf" | "graphJson">;
type NameOf = (index: number) => SlotName | null;

/** How the line of an event about a slot begins, as `RunLog` writes it. Events of clients have no index there. */
const SLOT_HEAD = /^\{"atMs":[^,]+,"group":"(?<group>[^"]+)","event":"\w+","index":(?<index>\d+),/;

const NO_NAME: NameOf = () => null;

export class ItemIds {
  readonly #groups: Groups;
  readonly #runId: () => string | null;
  readonly #known = new BoundedMap<string, NameOf>(LOG_NAMED_GROUPS_MAX);

  /** `runId`: of the run whose log it is; null while there is none. */
  constructor(groups: Groups, runId: () => string | null) {
    this.#groups = groups;
    this.#runId = runId;
  }

  /** A stored line with the id and the labels of the call that it is about, as far as its client has given it some. */
  readonly added = (line: string): string => {
    const { group, index } = SLOT_HEAD.exec(line)?.groups ?? {};
    if (group === undefined || index === undefined) return line;
    const name = this.#namesOf(group)(Number(index));
    if (name === null) return line;
    const { id, ...labels } = name;
    const more = JSON.stringify({ ...(id !== null && { itemId: id }), ...labels }).slice(1, -1);
    return more === "" ? line : `${line.slice(0, -1)},${more}}`;
  };

  #namesOf(groupId: string): NameOf {
    const known = this.#known.get(groupId);
    if (known !== undefined) return known;
    const runId = this.#runId();
    const seq = runId === null ? null : groupSeqOfId(groupId, groupSalt(runId));
    const stored = seq === null ? undefined : this.#groups.get(seq)?.stored;
    if (stored?.header.id !== groupId) return NO_NAME;
    const { graph } = stored.header;
    const isGraph = graph !== undefined && graph.ordersOnly !== true;
    const nameOf = isGraph ? this.#taskNames(stored.header.seq) : namesOf(this.#groups, stored);
    this.#known.set(groupId, nameOf);
    return nameOf;
  }

  /** The tasks of a graph by the indexes of their slots. A changed graph has more of them; those that it had keep their slots. */
  #taskNames(seq: number): NameOf {
    let tasks: readonly TaskPlace[] = [];
    let slots = 0;
    return (index) => {
      if (index >= slots) {
        // Written by this object from its own graph.
        const graph: Pick<CompiledGraph, "tasks" | "slots"> = JSON.parse(this.#groups.graphJson(seq) ?? NO_GRAPH);
        tasks = graph.tasks.map(({ id, first, step }) => ({ first, name: { id, ...step } }));
        ({ slots } = graph);
      }
      return tasks[lastUpTo(tasks, index)]?.name ?? null;
    };
  }
}

const NO_GRAPH = '{"tasks":[],"slots":0}';

type TaskPlace = Pick<CompiledTask, "first"> & { name: SlotName };

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
