/** The functions of workflow scripts, as the command sees them: the file is the stub that sandboxes get. */
import { pathToFileURL } from "node:url";
import { SCRIPT_STUB } from "../places.ts";

export type ScriptEvent =
  | { type: "phase"; phase: string }
  | { type: "log"; text: string }
  | { type: "agent_started"; label: string; phase: string | null }
  | {
      type: "agent_ended";
      label: string;
      phase: string | null;
      ok: boolean;
      code?: string;
      costUsd: number;
      durationMs: number;
      replayed: boolean;
    };

export type Script = {
  configure: (changes: {
    url: string;
    token: string;
    model: string | null;
    onEvent: (event: ScriptEvent) => void;
  }) => void;
  connected: () => Promise<void>;
  flushed: () => Promise<void>;
  budget: { total: number | null; spent: () => number; remaining: () => number | null };
  failures: { label: string | null; phase: string | null; code: string; message: string }[];
  BudgetError: ErrorConstructor;
};

export async function loadScript(): Promise<Script> {
  return await import(pathToFileURL(SCRIPT_STUB).href);
}
