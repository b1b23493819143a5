/** What a heap contains, by class and holder: V8's snapshots, summed up so that two of them can be compared. */
import { z } from "zod";
import type { Inspector } from "../servers/inspector.ts";

const snapshotForm = z.object({
  snapshot: z.object({
    meta: z.object({
      node_fields: z.array(z.string()),
      node_types: z.tuple([z.array(z.string())], z.unknown()),
      edge_fields: z.array(z.string()),
      edge_types: z.tuple([z.array(z.string())], z.unknown()),
    }),
  }),
  nodes: z.array(z.number()),
  edges: z.array(z.number()),
  strings: z.array(z.string()),
});
type Snapshot = z.infer<typeof snapshotForm>;

/** Bytes and number of the objects of one kind. `Map "x" of Holder`: the shortest way to them. */
export type Share = { bytes: number; count: number };
export type Holdings = { byClass: ReadonlyMap<string, Share>; byHolder: ReadonlyMap<string, Share> };

/** Takes a snapshot, which stops the isolate for a second, and sums it up. */
export async function holdings(inspector: Inspector): Promise<Holdings> {
  const pieces: string[] = [];
  const stop = inspector.listen("HeapProfiler.addHeapSnapshotChunk", (params) => {
    pieces.push(z.object({ chunk: z.string() }).parse(params).chunk);
  });
  await inspector.call("HeapProfiler.takeHeapSnapshot", { reportProgress: false });
  stop();
  return summed(snapshotForm.parse(JSON.parse(pieces.join(""))));
}

/** Sums up a snapshot: numbers in rows of as many columns as it names fields. */
export function summed({ snapshot: { meta }, nodes, edges, strings }: Snapshot): Holdings {
  const width = meta.node_fields.length;
  const column = (field: string): number => meta.node_fields.indexOf(field);
  const [type, name, size, edgeCount] = [column("type"), column("name"), column("self_size"), column("edge_count")];
  const [types] = meta.node_types;
  const classAt = (at: number): string => {
    const kind = types[nodes[at + type] ?? 0] ?? "";
    // Scopes are numbered anew in each snapshot.
    const named = (strings[nodes[at + name] ?? 0] ?? "").replace(/ @\d+/, "");
    return kind === "object" || kind === "closure" ? `${kind} ${named}` : `(${kind})`;
  };
  const parents = parentsOf({ nodes, edges, width, edgeCount, meta, strings });
  const byClass = new Map<string, Share>();
  const byHolder = new Map<string, Share>();
  for (let at = 0; at < nodes.length; at += width) {
    const bytes = nodes[at + size] ?? 0;
    const own = classAt(at);
    add(byClass, own, bytes);
    // Strings and arrays are named after their holders.
    let way = own;
    let holder = parents.get(at);
    for (let steps = 0; steps < WAY_STEPS && holder !== undefined; steps += 1) {
      way = `${classAt(holder.at)}.${holder.edge} > ${way}`;
      holder = parents.get(holder.at);
    }
    add(byHolder, way, bytes);
  }
  return { byClass, byHolder };
}

/** Holders that are named in the path to an object. */
const WAY_STEPS = 3;

type Parent = { at: number; edge: string };

/** The holder of each object on the shortest way from the root. */
function parentsOf(graph: {
  nodes: readonly number[];
  edges: readonly number[];
  width: number;
  edgeCount: number;
  meta: Snapshot["snapshot"]["meta"];
  strings: readonly string[];
}): Map<number, Parent> {
  const { nodes, edges, width, edgeCount, meta, strings } = graph;
  const edgeWidth = meta.edge_fields.length;
  const [types] = meta.edge_types;
  const firstEdge = new Map<number, number>();
  for (let at = 0, edge = 0; at < nodes.length; at += width) {
    firstEdge.set(at, edge);
    edge += (nodes[at + edgeCount] ?? 0) * edgeWidth;
  }
  const parents = new Map<number, Parent>();
  for (let queue = [0]; queue.length > 0;) {
    const next: number[] = [];
    for (const at of queue) {
      const from = firstEdge.get(at) ?? 0;
      for (let edge = from; edge < from + (nodes[at + edgeCount] ?? 0) * edgeWidth; edge += edgeWidth) {
        const kind = types[edges[edge] ?? 0] ?? "";
        const to = edges[edge + 2] ?? 0;
        if (kind === "weak" || to === 0 || parents.has(to)) continue;
        const label = edges[edge + 1] ?? 0;
        // The elements of a list are alike.
        parents.set(to, { at, edge: kind === "element" || kind === "hidden" ? "[]" : (strings[label] ?? "") });
        next.push(to);
      }
    }
    queue = next;
  }
  return parents;
}

function add(shares: Map<string, Share>, key: string, bytes: number): void {
  const share = shares.get(key);
  if (share === undefined) shares.set(key, { bytes, count: 1 });
  else {
    share.bytes += bytes;
    share.count += 1;
  }
}

/** What has grown most between two snapshots, in lines. */
export function growthLines(before: Holdings, after: Holdings, linesMax: number): string[] {
  const lines = (which: keyof Holdings): string[] =>
    [...after[which]]
      .map(([key, { bytes, count }]) => {
        const was = before[which].get(key) ?? { bytes: 0, count: 0 };
        return { key, bytes: bytes - was.bytes, count: count - was.count };
      })
      .filter(({ bytes }) => bytes > 0)
      .toSorted((a, b) => b.bytes - a.bytes)
      .slice(0, linesMax)
      .map(
        ({ key, bytes, count }) => `${(bytes / 1e3).toFixed(1).padStart(9)} KB ${String(count).padStart(7)} × ${key}`,
      );
  return ["grown by class:", ...lines("byClass"), "grown by holder:", ...lines("byHolder")];
}
