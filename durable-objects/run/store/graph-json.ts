/**
 * A graph as its rows have it. It is read over the settings that its client sent, so that later tasks inherit them; most of these are
 * also what the group stores for its calls, and long ones are not stored twice.
 */
import type { SharedBody } from "../../../src/call.ts";
import type { CompiledGraph } from "../../../src/run/graph/types.ts";
import { GRAPH_SETTINGS_CHARS_MIN } from "../../../src/limits.ts";

/** `inherited` comes first: the names of settings that are in the defaults of the group; absent = all settings are here. */
type StoredGraph = { inherited?: readonly string[] } & CompiledGraph;

/** The text of a graph for its rows. `defaultsJson`: what the calls of its group share. */
export function storedGraphJson(graph: CompiledGraph, defaultsJson: string): string {
  const { settings } = graph;
  if (settings === undefined || defaultsJson.length < GRAPH_SETTINGS_CHARS_MIN) return JSON.stringify(graph);
  const defaults = valuesOf(JSON.parse(defaultsJson));
  const inherited = Object.keys(settings).filter(
    (name) => JSON.stringify(settings[name]) === JSON.stringify(defaults.get(name)),
  );
  const own = Object.entries(settings).filter(([name]) => !inherited.includes(name));
  return JSON.stringify({ inherited, ...graph, settings: Object.fromEntries(own) } satisfies StoredGraph);
}

/** The text of a graph with all of its settings, from the text of its rows. */
export function wholeGraphJson(json: string, defaultsJson: string): string {
  if (!json.startsWith('{"inherited":')) return json;
  const { inherited = [], ...graph }: StoredGraph = JSON.parse(json);
  const defaults = valuesOf(JSON.parse(defaultsJson));
  const settings = Object.fromEntries(inherited.map((name) => [name, defaults.get(name)]));
  return JSON.stringify({ ...graph, settings: { ...settings, ...graph.settings } });
}

function valuesOf(defaults: SharedBody): ReadonlyMap<string, unknown> {
  return new Map<string, unknown>(Object.entries(defaults));
}
