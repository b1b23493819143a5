/** A child run's settings: its request, narrowed to its parent's settings. A child can never do more than its parent. */
import { allocate } from "../../../src/run/money/allocate.ts";
import type { Amounts, Ledger } from "../../../src/run/money/ledger.ts";
import type { Dimension, Reason } from "../../../src/errors.ts";
import { CHILD_SHARES_DEFAULT, PARALLEL_UNLIMITED } from "../../../src/limits.ts";
import type { ConfirmOver, RunInput, RunSettings } from "../../../src/objects/methods/runs.ts";

/** `reservation` of a refusal: what the child needs of its parent's budget, if that alone is why it is refused. */
export type Inherited =
  | { ok: true; settings: RunSettings; reservation: Amounts; equal: readonly Dimension[] }
  | { ok: false; reason: Reason; reservation?: Amounts };

/** The settings of a child of `parent`, or why it may not have one like that. Changes nothing. */
export function inherit(
  parent: { settings: RunSettings; ledger: Ledger; siblings: Amounts },
  input: RunInput,
  { id, nowMs }: { id: string; nowMs: number },
): Inherited {
  const { settings } = parent;
  const depth = settings.depth + 1;
  if (depth > settings.maxDepth)
    return { ok: false, reason: { reason: "depth_exceeded", maxDepth: settings.maxDepth } };
  if (input.unpriced === "free" && settings.unpriced === "refuse") {
    const message = 'unpriced: the parent run refuses models without a price, so a child cannot have "free"';
    return { ok: false, reason: { reason: "invalid_request", message, param: "unpriced" } };
  }
  const shares = settings.maxParallel === 0 ? CHILD_SHARES_DEFAULT : settings.maxParallel;
  const allocated = allocate(input.limits, parent.ledger, { shares, siblings: parent.siblings });
  if (!allocated.ok) return allocated;
  const expiresAtMs = Math.min(settings.expiresAtMs, nowMs + (input.expiresInMs ?? Infinity));
  return {
    ok: true,
    reservation: allocated.reservation,
    equal: allocated.equal,
    settings: {
      id,
      name: input.name,
      parentId: settings.id,
      ancestors: [...settings.ancestors, settings.id],
      holder: "run",
      depth,
      createdAtMs: nowMs,
      expiresAtMs,
      limits: allocated.limits,
      maxParallel: narrowed(input.maxParallel, settings.maxParallel),
      weight: Math.min(input.weight ?? Infinity, settings.weight),
      maxDepth: Math.min(input.maxDepth ?? settings.maxDepth, settings.maxDepth),
      models: input.models === null ? settings.models : [...settings.models, input.models],
      defaultModel: input.defaultModel ?? settings.defaultModel,
      errorStyle: input.errorStyle ?? settings.errorStyle,
      windowMs: input.windowMs ?? settings.windowMs,
      unpriced: input.unpriced ?? settings.unpriced,
      // A child is deleted no later after its end than its parent would be.
      retentionMs: Math.min(input.retentionMs ?? settings.retentionMs, settings.retentionMs),
      region: input.region ?? settings.region,
      // Only the operator registers tools, when the root run is opened.
      tools: settings.tools,
      metadataJson: input.metadataJson,
      ...replayOf(settings, input.replay),
      ...serviceTierOf(input.serviceTier ?? settings.serviceTier),
      ...confirmOverOf(settings.confirmOver, input.confirmOver),
      ...onExhaustedOf(input.onExhausted ?? settings.onExhausted),
      ...(input.trace === undefined ? {} : { trace: input.trace }),
      ...(input.notify === undefined ? {} : { notify: input.notify }),
      ...(settings.trace === undefined ? {} : { parentTrace: settings.trace }),
    },
  };
}

/** A child's groups need a confirmation where its parent's would: a child run is no way around it. */
function confirmOverOf(...all: RunSettings["confirmOver"][]): Pick<RunSettings, "confirmOver"> {
  const given = all.filter((each) => each !== undefined);
  if (given.length === 0) return {};
  const least = (of: (over: ConfirmOver) => number | null): number | null => {
    const found = Math.min(...given.map((over) => of(over) ?? Infinity));
    return found === Infinity ? null : found;
  };
  return { confirmOver: { nanoUsd: least(({ nanoUsd }) => nanoUsd), calls: least(({ calls }) => calls) } };
}

/** A child of a run that records also records, and replays its parent's answers unless it names another run's. */
function replayOf({ id, replay }: RunSettings, asked: RunInput["replay"]): Pick<RunSettings, "replay"> {
  const names = asked !== undefined && asked.from !== null;
  if (replay !== undefined && !names) return { replay: { from: id, inherited: true } };
  return asked === undefined ? {} : { replay: asked };
}

function serviceTierOf(serviceTier: RunSettings["serviceTier"]): Pick<RunSettings, "serviceTier"> {
  return serviceTier === undefined ? {} : { serviceTier };
}

function onExhaustedOf(onExhausted: RunSettings["onExhausted"]): Pick<RunSettings, "onExhausted"> {
  return onExhausted === undefined ? {} : { onExhausted };
}

/** The narrower of two widths, of which 0 is the widest. */
function narrowed(requested: number | null, parent: number): number {
  if (requested === null || requested === 0) return parent;
  return Math.min(requested, parent === 0 ? PARALLEL_UNLIMITED : parent);
}
