/** Which tree a run belongs to. */
import type { RunSettings } from "../../../src/objects/methods/runs.ts";

/** The id of the root run: of the run itself if nothing is above it. */
export function rootOf({ ancestors, id }: Pick<RunSettings, "ancestors" | "id">): string {
  return ancestors[0] ?? id;
}
