/** A child run's settings: what it asks for, narrowed by what its parent has. A child can never do more than its parent. */
import { carve } from "../../src/budget/carve.ts";
import type { Amounts, Ledger, Limits } from "../../src/budget/ledger.ts";
import type { ErrorStyle } from "../../src/contract/fields.ts";
import type { Reason } from "../../src/errors.ts";
import { PARALLEL_MAX } from "../../src/limits.ts";
import type { RunSettings } from "./settings.ts";

/** A request for a run, in the gateway's own units; null = left out. */
export type RunAsked = {
  name: string | null;
  limits: Limits;
  maxParallel: number | null;
  maxDepth: number | null;
  expiresInMs: number | null;
  models: string[] | null;
  defaultModel: string | null;
  errorStyle: ErrorStyle | null;
  windowMs: number | null;
  unpriced: "refuse" | "free" | null;
  retentionMs: number | null;
  metadataJson: string;
};

export type Inherited = { ok: true; settings: RunSettings; hold: Amounts } | { ok: false; reason: Reason };

/** The settings of a child of `parent`, or why it may not have one like that. Changes nothing. */
export function inherit(
  parent: { settings: RunSettings; ledger: Ledger },
  asked: RunAsked,
  { id, nowMs }: { id: string; nowMs: number },
): Inherited {
  const { settings } = parent;
  const depth = settings.depth + 1;
  if (depth > settings.maxDepth)
    return { ok: false, reason: { reason: "depth_exceeded", maxDepth: settings.maxDepth } };
  if (asked.unpriced === "free" && settings.unpriced === "refuse") {
    const message = 'unpriced: the parent run refuses models without a price, so a child cannot have "free"';
    return { ok: false, reason: { reason: "invalid_request", message, param: "unpriced" } };
  }
  const width = settings.maxParallel === 0 ? PARALLEL_MAX : settings.maxParallel;
  const carved = carve(asked.limits, parent.ledger, width);
  if (!carved.ok) return carved;
  const expiresAtMs = Math.min(settings.expiresAtMs, nowMs + (asked.expiresInMs ?? Infinity));
  return {
    ok: true,
    hold: carved.hold,
    settings: {
      id,
      name: asked.name,
      parentId: settings.id,
      ancestors: [...settings.ancestors, settings.id],
      holder: "run",
      depth,
      createdAtMs: nowMs,
      expiresAtMs,
      limits: carved.limits,
      maxParallel: narrowed(asked.maxParallel, settings.maxParallel),
      maxDepth: Math.min(asked.maxDepth ?? settings.maxDepth, settings.maxDepth),
      models: asked.models === null ? settings.models : [...settings.models, asked.models],
      defaultModel: asked.defaultModel ?? settings.defaultModel,
      errorStyle: asked.errorStyle ?? settings.errorStyle,
      windowMs: asked.windowMs ?? settings.windowMs,
      unpriced: asked.unpriced ?? settings.unpriced,
      retentionMs: asked.retentionMs ?? settings.retentionMs,
      // Only the operator registers tools, and does so where the root run is opened.
      tools: settings.tools,
      metadataJson: asked.metadataJson,
    },
  };
}

/** The narrower of two widths, of which 0 is the widest. */
function narrowed(asked: number | null, parent: number): number {
  if (asked === null) return parent;
  if (parent === 0) return asked;
  return asked === 0 ? parent : Math.min(asked, parent);
}
