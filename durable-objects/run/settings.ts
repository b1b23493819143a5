/** What a run is opened with, as its object stores it and as routes see it. */
import type { Limits } from "../../src/budget/ledger.ts";
import type { ErrorStyle } from "../../src/contract/fields.ts";
import type { Tool } from "../../src/tools/tool.ts";

export type RunStatus = "active" | "paused" | EndStatus;
export type EndStatus = "closed" | "cancelled" | "expired";

/** Whether a run of this status takes no more calls. */
export function hasEnded(status: RunStatus): status is EndStatus {
  return status === "closed" || status === "cancelled" || status === "expired";
}

export type RunSettings = {
  id: string;
  name: string | null;
  parentId: string | null;
  /** Runs above it, root first: they may look at it, close it and cancel it. */
  ancestors: string[];
  /** Who holds this run's budget and must be told what it spent: its parent, the day's root budget, or nobody. */
  holder: "run" | "directory" | null;
  depth: number;
  createdAtMs: number;
  expiresAtMs: number;
  /** `usd` in nano-USD; null = no limit. */
  limits: Limits;
  /** 0 = no cap of the run's own. */
  maxParallel: number;
  maxDepth: number;
  /** Lists of patterns, one from each run of the line that names some: a model must match one of every list. */
  models: string[][];
  defaultModel: string | null;
  errorStyle: ErrorStyle;
  windowMs: number;
  unpriced: "refuse" | "free";
  /** How long results and log are kept once the run has ended. */
  retentionMs: number;
  /** Tools that its code may call: those of the root run it belongs to. */
  tools: Tool[];
  /** The client's own object, as JSON text: it is stored and given back, never read. */
  metadataJson: string;
};
