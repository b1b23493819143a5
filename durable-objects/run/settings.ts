/** What a run is opened with, as its object stores it and as routes see it. */
import type { Limits } from "../../src/budget/ledger.ts";
import type { ErrorStyle } from "../../src/contract/fields.ts";

export type RunStatus = "active" | "paused" | "closed" | "cancelled" | "expired";

export type RunSettings = {
  id: string;
  name: string | null;
  parentId: string | null;
  depth: number;
  createdAtMs: number;
  expiresAtMs: number;
  /** `usd` in nano-USD; null = no limit. */
  limits: Limits;
  /** 0 = no cap of the run's own. */
  maxParallel: number;
  maxDepth: number;
  /** Patterns of allowed models; null = all. */
  models: string[] | null;
  defaultModel: string | null;
  errorStyle: ErrorStyle;
  windowMs: number;
  unpriced: "refuse" | "free";
  /** The client's own object, as JSON text: it is stored and given back, never read. */
  metadataJson: string;
};
