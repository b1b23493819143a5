/** Where calls of a run go: the targets of models and routes, under the rules of the run and the gateway's configuration. */
import { ANY_TOKENS } from "../../src/run/money/estimate.ts";
import type { GroupHeader } from "../../src/run/group/group.ts";
import type { StoredLease, Target } from "../../src/run/leases/shard.ts";
import type { Config } from "../../src/env.ts";
import type { Reason } from "../../src/errors.ts";
import { RUN_TARGETS_CACHED_MAX, TIMEOUT_MS_MAX } from "../../src/limits.ts";
import type { RunSettings } from "../../src/objects/methods/runs.ts";
import { gateNameOf } from "../../src/providers/config/keys.ts";
import { targetOf } from "../../src/providers/target.ts";

/** What of the gateway's configuration decides on targets. */
export type ModelConfig = Pick<Config, "upstreams" | "routes" | "defaultModel">;

/** A target for leases whose upstream the configuration no longer has: they can settle, but never be retried. */
export const UNCONFIGURED_TARGET: Omit<Target, "upstream" | "gate" | "model"> = {
  price: null,
  bounds: ANY_TOKENS,
  allowParams: [],
  maxInFlight: 0,
  timeoutMs: TIMEOUT_MS_MAX,
  attemptsMax: 0,
};

/** The targets of models by the name that clients use. */
export type ModelTargets = { targets: Pick<RunTargets, "resolve"> };

export class RunTargets {
  readonly #config: ModelConfig;
  #settings: RunSettings;
  /** By the model as clients name it. */
  readonly #known = new Map<string | null, Target | Reason>();

  constructor(config: ModelConfig, settings: RunSettings) {
    this.#config = config;
    this.#settings = settings;
  }

  /** The settings of the run have changed. */
  changed(settings: RunSettings): void {
    this.#settings = settings;
    this.#known.clear();
  }

  /** Where calls for a model go, or why the model is refused; null = the default model. */
  resolve(model: string | null): Target | Reason {
    const known = this.#known.get(model);
    if (known !== undefined) return known;
    const found = targetOf(model, this.#settings, this.#config);
    const target = found.ok ? found.target : found.reason;
    if (this.#known.size < RUN_TARGETS_CACHED_MAX) this.#known.set(model, target);
    return target;
  }

  /** Where calls of a group go that name this one of its models; null if it is refused by now. */
  ofGroup({ models }: GroupHeader, modelIndex: number): Target | null {
    const target = this.resolve(models[modelIndex] ?? null);
    return "reason" in target ? null : target;
  }

  /** Where an attempt went that an earlier instance started. */
  ofLease({ upstream, model, key }: StoredLease): Target {
    // Without the run's list of models: it may allow a route, and not its targets.
    const resolved = targetOf(`${upstream}/${model}`, { ...this.#settings, models: [] }, this.#config);
    const target = resolved.ok ? resolved.target : null;
    const targets = target?.choices?.flatMap((choice) => choice.targets) ?? (target === null ? [] : [target]);
    const found = targets.find((each) => each.key === key);
    return found ?? { ...UNCONFIGURED_TARGET, upstream, gate: gateNameOf(upstream, key), model };
  }

  /** The name under which answers of a model are recorded: its route, or its upstream and model; null if it is refused. */
  recordedNameOf(model: string | null): string | null {
    const target = this.resolve(model);
    return "reason" in target ? null : (target.route ?? `${target.upstream}/${target.model}`);
  }
}
