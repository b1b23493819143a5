/** The graph of a group that may change while its answer is sent: it is read anew once something of a later version comes. */
import type { CompiledGraph } from "../../../run/graph/types.ts";
import { SlotNames } from "../../replies/graph/slot-names.ts";
import type { GroupView, SlotView } from "../../../objects/methods/groups.ts";
import type { RunCaller } from "../../../objects/clients/caller.ts";

/** The graph of a group; null if it has none. */
export async function graphOf(run: RunCaller, seq: number): Promise<CompiledGraph | null> {
  const json = await run.callWithRetry<string | null>((stub) => stub.graphJson(seq));
  return json === null ? null : parsed(json);
}

function parsed(json: string): CompiledGraph {
  return JSON.parse(json);
}

export class ChangingGraph {
  readonly #read: () => Promise<CompiledGraph>;
  #graph: CompiledGraph;
  #names: SlotNames | null = null;

  constructor(run: RunCaller, seq: number, graph: CompiledGraph) {
    this.#graph = graph;
    this.#read = async () => {
      const found = await graphOf(run, seq);
      if (found === null) throw new Error(`the graph of group ${seq} of its run is gone`);
      return found;
    };
  }

  /** The graph as it was read last. */
  get latest(): CompiledGraph {
    return this.#graph;
  }

  /** The graph of a group's state, or of a later one. */
  async of({ graph }: Pick<GroupView, "graph">): Promise<CompiledGraph> {
    if ((graph?.version ?? 1) > this.#graph.version) await this.#reload();
    return this.#graph;
  }

  /** The names of slots that were just read. */
  async namesOf(slots: readonly SlotView[]): Promise<SlotNames> {
    if (slots.some(({ index }) => index >= this.#graph.slots)) await this.#reload();
    this.#names ??= new SlotNames(this.#graph);
    return this.#names;
  }

  async #reload(): Promise<void> {
    this.#graph = await this.#read();
    this.#names = null;
  }
}
