/** The functions of workflow scripts, as the command sees them: the file is the stub that sandboxes get. */

/**
 * @typedef {{ type: "phase", phase: string } | { type: "log", text: string }
 *   | { type: "agent_started", label: string, phase: string | null }
 *   | { type: "agent_ended", label: string, phase: string | null, ok: boolean, code?: string, costUsd: number,
 *       durationMs: number, replayed: boolean }} ScriptEvent
 */

/**
 * @typedef {{
 *   configure: (changes: { url: string, token: string, model: string | null, onEvent: (event: ScriptEvent) => void }) => void,
 *   connected: () => Promise<void>, flushed: () => Promise<void>,
 *   budget: { total: number | null, spent: () => number, remaining: () => number | null },
 *   failures: { label: string | null, phase: string | null, code: string, message: string }[],
 *   BudgetError: ErrorConstructor,
 * }} Script
 */

const STUB = new URL("../../stubs/script/fanout_script.mjs", import.meta.url);

/** @returns {Promise<Script>} */
export async function loadScript() {
  return await import(STUB.href);
}
