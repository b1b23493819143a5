/** One task of a graph on the wire: summed over its slots as they are read, so that a large one is never in memory. */
import type { SlotView } from "../../../objects/methods/groups.ts";
import { toWire, type WireError } from "../../../errors.ts";
import type { CompiledTask } from "../../../run/graph/types.ts";
import { slotError } from "../slot.ts";
import { usageOf } from "../usage.ts";

/** `partial`: some elements of a `foreach` completed. */
export type TaskStatus = "queued" | "running" | "completed" | "partial" | "failed" | "skipped" | "cancelled";

/** The error of a slot of a graph. A slot with a fallback has completed; its error says why the fallback was used. */
export function taskError(slot: SlotView): WireError | null {
  if (slot.state === "completed") return slot.reason === null ? null : toWire(slot.reason).error;
  return slotError(slot);
}

/** What became of a task, from its slots. */
export class TaskSummary {
  readonly #task: CompiledTask;
  readonly #states = new Map<SlotView["state"], number>();
  readonly #used = { promptTokens: 0, completionTokens: 0, costNanoUsd: 0 };
  #slots = 0;
  #attempts = 0;
  #isReplayed = false;
  #longestMs = 0;
  #fallbacks = 0;
  #unmet = 0;
  #error: WireError | null = null;
  #model: string | null = null;

  constructor(task: CompiledTask) {
    this.#task = task;
  }

  /** Adds one of its slots. */
  add(slot: SlotView): void {
    this.#slots += 1;
    this.#states.set(slot.state, (this.#states.get(slot.state) ?? 0) + 1);
    this.#used.promptTokens += slot.promptTokens;
    this.#used.completionTokens += slot.completionTokens;
    this.#used.costNanoUsd += slot.costNanoUsd;
    this.#attempts += slot.attempts;
    this.#isReplayed ||= slot.replayed === true;
    this.#longestMs = Math.max(this.#longestMs, slot.latencyMs);
    if (slot.state === "completed" && slot.reason !== null) this.#fallbacks += 1;
    if (slot.reason?.reason === "condition_not_met") this.#unmet += 1;
    this.#error ??= taskError(slot);
    this.#model ??= slot.model;
  }

  get status(): TaskStatus {
    const count = (state: SlotView["state"]): number => this.#states.get(state) ?? 0;
    // A foreach over nothing is done; an alternative that was not needed is not.
    if (this.#slots === 0) return this.#task.foreach === undefined ? "skipped" : "completed";
    // What a condition has skipped of a foreach is not missing.
    if (count("completed") > 0 && count("completed") + this.#unmet === this.#slots) return "completed";
    if (count("running") > 0) return "running";
    if (count("queued") > 0) return count("queued") === this.#slots ? "queued" : "running";
    if (count("completed") > 0) return "partial";
    if (count("failed") > 0) return "failed";
    return count("cancelled") > 0 ? "cancelled" : "skipped";
  }

  /** Its fields beside its output; `replacedBy` is the id of the alternative that answers for it. */
  fields(replacedBy: string | null) {
    const { phase, foreach: each, alternativeOf } = this.#task;
    return {
      status: this.status,
      error: this.#error,
      duration_ms: this.#attempts === 0 ? null : this.#longestMs,
      usage: this.#attempts === 0 && !this.#isReplayed ? null : usageOf(this.#used),
      attempts: this.#attempts,
      model: each === undefined ? this.#model : undefined,
      slots: each === undefined ? undefined : this.#slots,
      fallback: this.#fallbacks > 0 ? true : undefined,
      replaced_by: replacedBy ?? undefined,
      not_needed: alternativeOf !== undefined && this.#slots === 0 ? true : undefined,
      phase,
    };
  }
}

/** The output of a slot: null unless it completed. */
export function outputOf(slot: SlotView | undefined): string | null {
  return slot?.state === "completed" ? (slot.text ?? "") : null;
}
