/** A run as its object stores it and as routes see it: settings, status, documents, changes and child runs. */
import type { Limits } from "../../run/money/ledger.ts";
import type { Notify, WantedTier } from "../../call.ts";
import type { ErrorStyle, OnExhausted } from "../../contract/fields.ts";
import type { Region } from "../../contract/fields.ts";
import type { RunDocument, RunSummary as SummaryDocument } from "../../contract/runs.ts";
import type { Dimension } from "../../errors.ts";
import type { Tool } from "../../tools/tool.ts";
import type { TraceContext } from "../../trace-context.ts";
import type { ModelRules } from "../../providers/target.ts";
import type { ReplayRule } from "./replay.ts";
import type { Refused } from "./types.ts";

/** `escalated`: active, and a call of its most important tier has failed, or a vote that escalates has decided nothing. */
export type RunStatus = "active" | "paused" | "escalated" | EndStatus;
export type EndStatus = "closed" | "cancelled" | "expired";

/** What a group may cost that starts without a confirmation; null = any. */
export type ConfirmOver = { nanoUsd: number | null; calls: number | null };

/** What a run is opened with. */
export type RunSettings = {
  id: string;
  name: string | null;
  parentId: string | null;
  /** Runs above it, root first: they may read it, close it and cancel it. */
  ancestors: string[];
  /**
   * Who reserves this run's budget and must be notified of what it spent: its parent, its part of the list of runs inside a lease of
   * the day's root budget, or no one. `directory`: the object of the whole budget of the day.
   */
  holder: "run" | "part" | "directory" | null;
  depth: number;
  createdAtMs: number;
  expiresAtMs: number;
  /** `usd` in nano-USD; null = no limit. */
  limits: Limits;
  /** 0 = no cap of the run's own. */
  maxParallel: number;
  /** Its share at gates, relative to other runs. */
  weight: number;
  maxDepth: number;
  /** Lists of patterns, one from each ancestor that names some and from the run itself: a model must match one of every list. */
  models: string[][];
  defaultModel: string | null;
  errorStyle: ErrorStyle;
  windowMs: number;
  unpriced: "refuse" | "free";
  /** How long results and log are kept once the run has ended. */
  retentionMs: number;
  /** Hint where its object begins; null = near its first caller. */
  region: Region | null;
  /** Tools that its code may call: those of the root run it belongs to. */
  tools: Tool[];
  /** The client's own object, as JSON text: it is stored and returned, never read. */
  metadataJson: string;
  /** Set if its answers are recorded and replayed. */
  replay?: ReplayRule;
  /** The service tier of calls that name none; absent = none. */
  serviceTier?: WantedTier;
  /** Groups whose quotes are above this await a confirmation; absent = none does. */
  confirmOver?: ConfirmOver;
  /** What the slots of its groups do when the budget is used up; absent = they fail. */
  onExhausted?: OnExhausted;
  /** Where in a trace its client has opened it; absent = in none. */
  trace?: TraceContext;
  /** What of it, and of its groups, the operator's webhook is notified of; absent = nothing. */
  notify?: Notify;
  /** The same of its parent. */
  parentTrace?: TraceContext;
};

/** A request for a run, in the gateway's own units; null = left out. */
export type RunInput = {
  name: string | null;
  limits: Limits;
  maxParallel: number | null;
  weight: number | null;
  maxDepth: number | null;
  expiresInMs: number | null;
  models: string[] | null;
  defaultModel: string | null;
  errorStyle: ErrorStyle | null;
  windowMs: number | null;
  unpriced: "refuse" | "free" | null;
  retentionMs: number | null;
  region: Region | null;
  metadataJson: string;
  /** Absent = its answers are not recorded. */
  replay?: ReplayRule;
  /** Absent = left out. */
  serviceTier?: WantedTier;
  /** Absent = left out. */
  confirmOver?: ConfirmOver;
  /** Absent = left out. */
  onExhausted?: OnExhausted;
  /** Where in a trace its client opens it; absent = in none. */
  trace?: TraceContext;
  /** Absent = left out. */
  notify?: Notify;
};

/** New limits and switches of a run; what is left out keeps its value. */
export type RunPatch = {
  limits: Partial<Limits>;
  maxParallel: number | null;
  paused: boolean | null;
  /** What all runs of a day may spend together, as configured now; null = no such budget. */
  rootNanoUsdPerDay: number | null;
  /** Absent = it stays. */
  expiresAtMs?: number;
  /** Of a root run: replaces its list of models; absent = it stays. */
  models?: string[];
};

/** A tool of a run; its schema as JSON text, as it is stored. */
export type StoredTool = Omit<RunDocument["tools"][number], "parameters"> & Pick<Tool, "parametersJson">;

/** The run document with its metadata still as the text it is stored as. */
export type StoredDocument = Omit<RunDocument, "metadata" | "replay" | "replay_from" | "tools"> & {
  tools: StoredTool[];
  replay?: RunDocument["replay"];
  replay_from?: RunDocument["replay_from"];
  metadataJson: string;
  /** The client's trace that its spans are in, for its token; absent = in one of their own. */
  traceId?: string;
};

/** What a root run reports to the list of runs, as the list shows it. */
export type RunSummary = SummaryDocument;

/** A run's own part of its subtree's figures; USD as decimals. */
export type Figures = { openChildren: string[]; spent: Record<Dimension, number>; inFlight: Record<Dimension, number> };

/** How far a run is; `alarmAtMs` null = its alarm is not set. */
export type TurnLook = {
  status: StoredDocument["status"];
  queued: number;
  delayed: number;
  inFlight: number;
  openGroups: number;
  openChildren: number;
  alarmAtMs: number | null;
};

/** What a run has done at once. `isFinished`: whether all jobs have ended. The log has it between `logFrom` and `logTo`. */
export type TurnReport = { before: TurnLook; after: TurnLook; isFinished: boolean; logFrom: number; logTo: number };

/** A child run by its number among the children of its parent. */
export type ListedChild = { seq: number; id: string };

/** The run's document after a change, or why the change was refused. */
export type PatchReply = { ok: true; document: StoredDocument } | Refused;

/** A request for a child run may wait for its parent's capacity. A call waits for a part of that time, and keeps its place for the next. */
export type CapacityWait = {
  /** Longest that this call waits; 0 = not at all. */
  waitMs: number;
  /** The request's time is over when this call's is. */
  isLast: boolean;
  /** A call of the same request was sent before. */
  isRepeated: boolean;
};

/** `replayed`: the Idempotency-Key had opened this child before. `remainingNanoUsd`: of the parent; null = no limit. */
export type OpenChildReply =
  | { ok: true; document: StoredDocument; replayed: boolean; remainingNanoUsd: number | null }
  | Refused;

export type ModelRulesReply = { ok: true; rules: ModelRules } | Refused;

/** What a route must know of the run before it can answer a batch, or why the run takes none. */
export type AnswerSettingsReply = { ok: true; errorStyle: ErrorStyle; width: number } | Refused;
