/** What a program is, what it is given, and what it hands back. */
import type { World } from "../world.ts";
import type { Client } from "./client.ts";

export const KINDS = [
  "batch",
  "hedged",
  "leaves",
  "async",
  "queries",
  "poor",
  "graph",
  "children",
  "topped-up",
  "paused",
] as const;
export type Kind = (typeof KINDS)[number];

export type Program = {
  name: string;
  kind: Kind;
  slots: number;
  width: number;
  /** The model, whose upstream has a gate of its own. */
  model: string;
  /** Longest that its client repeats a request or waits for a group, virtual ms. */
  patienceMs: number;
  /** Null = the run has no limit. */
  limitNanoUsd: number | null;
};

/** Slots by how they ended. */
export type Ends = { completed: number; failed: number };

export type Work = {
  world: World;
  program: Program;
  runId: string;
  /** With the run's token. */
  client: Client;
  violated: (what: string) => void;
  /** From now on the provider's bill of a name may reach so much. */
  limited: (name: string, nanoUsd: number) => void;
};

/** The answers' cap. */
export const MAX_TOKENS = 40;
/** What a slot reserves at most, roughly. */
export const SLOT_NANO_USD = 250_000;
/** What a poor run may spend for each slot: about half of what they cost. */
export const POOR_SLOT_NANO_USD = 14_000;

/** How slots may fail at a moody provider, when their attempts are used up. */
export const FAILURES: ReadonlySet<string> = new Set([
  "upstream_error",
  "upstream_rate_limited",
  "upstream_timeout",
  "upstream_truncated",
]);
