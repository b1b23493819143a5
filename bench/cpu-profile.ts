/** A V8 CPU profile folded into functions and source files. Pure: takes the profile and the bundle's map as data. */
import { SourceMap } from "node:module";
import { z } from "zod";
import type { Bundle } from "../scripts/local/bundle.ts";

const callFrame = z.object({
  functionName: z.string(),
  url: z.string(),
  lineNumber: z.number(),
  columnNumber: z.number(),
});
const profileNode = z.object({
  id: z.number(),
  callFrame,
  children: z.array(z.number()).default([]),
  positionTicks: z.array(z.object({ line: z.number(), ticks: z.number() })).default([]),
});

/** A profile as `Profiler.stop` answers it. Line and column numbers count from 0, those of ticks from 1; times in µs. */
export const cpuProfile = z.object({
  nodes: z.array(profileNode),
  samples: z.array(z.number()),
  timeDeltas: z.array(z.number()),
  startTime: z.number(),
  endTime: z.number(),
});
export type CpuProfile = z.infer<typeof cpuProfile>;

/** Time of one function, file or line: at its own code, and with everything it called. */
export type Cost = { name: string; selfUs: number; totalUs: number };

export type Folded = {
  /** Time in which anything ran, µs: the base of shares. */
  busyUs: number;
  idleUs: number;
  functions: Cost[];
  files: Cost[];
  /** Self time only. */
  lines: Cost[];
};

/** The name under which workerd runs the bundle. */
const MODULE = "gateway.mjs";

type Place = { label: string; file: string };

/** Folds a profile. Costs are sorted by self time, greatest first. */
export function foldProfile(profile: CpuProfile, bundle: Bundle): Folded {
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const selfUs = new Map<number, number>();
  profile.samples.forEach((id, index) => {
    // A delta is the time since the sample before, so it belongs to that one; the sum is the same, the shift a sample.
    selfUs.set(id, (selfUs.get(id) ?? 0) + Math.max(0, profile.timeDeltas[index] ?? 0));
  });
  const places = placesOf(bundle);
  const functions = new Costs();
  const files = new Costs();
  const lines = new Costs();
  let idleUs = 0;

  /** Time of a node and all below it. A name that is already on the stack is not counted into its total twice. */
  const walk = (id: number, open: ReadonlySet<string>): number => {
    const node = nodes.get(id);
    if (node === undefined) return 0;
    const self = selfUs.get(id) ?? 0;
    if (node.callFrame.functionName === "(idle)") {
      idleUs += self;
      return 0;
    }
    const place = places.ofFrame(node.callFrame);
    const within = new Set([...open, place.label, place.file]);
    const total = node.children.reduce((sum, child) => sum + walk(child, within), self);
    functions.add(place.label, self, open.has(place.label) ? 0 : total);
    files.add(place.file, self, open.has(place.file) ? 0 : total);
    const ticks = node.positionTicks.reduce((sum, { ticks }) => sum + ticks, 0);
    for (const tick of node.positionTicks)
      lines.add(places.ofLine(node.callFrame, tick.line), (self * tick.ticks) / ticks, 0);
    return total;
  };
  const root = profile.nodes[0];
  const busyUs = root === undefined ? 0 : walk(root.id, new Set());
  return { busyUs, idleUs, functions: functions.sorted(), files: files.sorted(), lines: lines.sorted() };
}

/** A stretch in which the isolate did one thing after another without a rest: its length, and what it was in, greatest first. */
export type Piece = { us: number; functions: Cost[] };

/** The longest stretches of a profile between two rests. One of them may be several tasks: what each was in tells. */
export function longestPieces(profile: CpuProfile, bundle: Bundle, count: number): Piece[] {
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const parents = new Map(profile.nodes.flatMap(({ id, children }) => children.map((child) => [child, id])));
  const spans: { us: number; selfUs: Map<number, number> }[] = [{ us: 0, selfUs: new Map() }];
  profile.samples.forEach((id, index) => {
    const us = Math.max(0, profile.timeDeltas[index] ?? 0);
    if (nodes.get(id)?.callFrame.functionName === "(idle)") return void spans.push({ us: 0, selfUs: new Map() });
    const span = spans.at(-1);
    if (span === undefined) return;
    span.us += us;
    span.selfUs.set(id, (span.selfUs.get(id) ?? 0) + us);
  });
  const places = placesOf(bundle);
  return spans
    .toSorted((a, b) => b.us - a.us)
    .slice(0, count)
    .map(({ us, selfUs }) => {
      const costs = new Costs();
      for (const [id, self] of selfUs) {
        const seen = new Set<string>();
        for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
          const node = nodes.get(at);
          const label = node === undefined ? "" : places.ofFrame(node.callFrame).label;
          costs.add(label, at === id ? self : 0, seen.has(label) ? 0 : self);
          seen.add(label);
        }
      }
      return { us, functions: costs.sorted().toSorted((a, b) => b.totalUs - a.totalUs) };
    });
}

/** What the isolate was in from one sample to the next, µs of the machine's monotonic clock; `stack`: labels, outermost first. */
export type Moment = { fromUs: number; toUs: number; stack: readonly string[] };

/** A profile in its order. */
export function momentsOf(profile: CpuProfile, bundle: Bundle): Moment[] {
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const parents = new Map(profile.nodes.flatMap(({ id, children }) => children.map((child) => [child, id])));
  const places = placesOf(bundle);
  const stacks = new Map<number, string[]>();
  const stackOf = (id: number): string[] => {
    const known = stacks.get(id);
    if (known !== undefined) return known;
    const node = nodes.get(id);
    const parent = parents.get(id);
    const label = node === undefined ? "" : places.ofFrame(node.callFrame).label;
    const stack = parent === undefined ? [] : [...stackOf(parent), label];
    stacks.set(id, stack);
    return stack;
  };
  let atUs = profile.startTime;
  return profile.samples.map((id, index) => {
    const fromUs = atUs;
    atUs += Math.max(0, profile.timeDeltas[index] ?? 0);
    return { fromUs, toUs: atUs, stack: stackOf(id) };
  });
}

class Costs {
  readonly #costs = new Map<string, Cost>();

  add(name: string, selfUs: number, totalUs: number): void {
    const cost = this.#costs.get(name) ?? { name, selfUs: 0, totalUs: 0 };
    cost.selfUs += selfUs;
    cost.totalUs += totalUs;
    this.#costs.set(name, cost);
  }

  sorted(): Cost[] {
    return [...this.#costs.values()].toSorted((a, b) => b.selfUs - a.selfUs);
  }
}

type Places = {
  ofFrame: (frame: z.infer<typeof callFrame>) => Place;
  ofLine: (frame: z.infer<typeof callFrame>, line: number) => string;
};

/** Where code of the bundle was written. Frames of the runtime have no place in it and keep their own names. */
function placesOf(bundle: Bundle): Places {
  const map = new SourceMap(JSON.parse(bundle.map));
  const codeLines = bundle.code.split("\n");
  const written = (line: number, column: number): { file: string; line: number } | null => {
    const entry = map.findEntry(line, column);
    if (!("originalSource" in entry)) return null;
    return { file: shortened(entry.originalSource), line: entry.originalLine + 1 };
  };
  return {
    ofFrame: (frame) => {
      const place = frame.url.includes(MODULE) ? written(frame.lineNumber, frame.columnNumber) : null;
      const name = frame.functionName || "(anonymous)";
      if (place !== null) return { label: `${name} ${place.file}:${place.line}`, file: place.file };
      if (frame.url !== "") return { label: `${name} ${frame.url}`, file: frame.url };
      // What V8 itself names, such as "(program)", is in brackets; other frames without a script are the runtime's functions.
      const native = `${frame.functionName || "(unnamed)"} [native]`;
      return frame.functionName.startsWith("(") ? { label: name, file: name } : { label: native, file: "[native]" };
    },
    ofLine: (frame, line) => {
      const code = codeLines[line - 1] ?? "";
      const place = frame.url.includes(MODULE) ? written(line - 1, code.search(/\S|$/)) : null;
      return place === null
        ? `${frame.functionName || "(unnamed)"} [native]`
        : `${place.file}:${place.line}  ${code.trim().slice(0, 80)}`;
    },
  };
}

/** `src/run/queue/slot.ts` for the repository's own files, `hono: dist/compose.js` for those of packages. */
function shortened(source: string): string {
  const dependency = /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules)(.*)$/.exec(source);
  if (dependency !== null) return `${dependency[1]}: ${dependency[2]}`;
  return source.replace(/^.*?(?=(?:src|durable-objects|stubs|bench)\/)/, "");
}
