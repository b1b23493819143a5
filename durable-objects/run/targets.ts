/** Where calls of a run go: the targets of models and routes, under the rules of the run and the gateway's configuration. */
import { ANY_TOKENS } from "../../src/run/money/estimate.ts";
import type { GroupHeader } from "../../src/run/group/group.ts";
import type { StoredLease, Target } from "../../src/run/leases/shard.ts";
import type { Config } from "../../src/env.ts";
import type { Reason } from "../../src/errors.ts";
import { TOOL_UPSTREAM, toolOfModel, type Endpoint } from "../../src/call.ts";
import {
  PARALLEL_MAX,
  RUN_TARGETS_CACHED_MAX,
  TIMEOUT_MS_MAX,
  TOOL_ATTEMPTS_MAX,
  TOOL_QUEUE_MS_MAX,
} from "../../src/limits.ts";
import type { Tool } from "../../src/tools/tool.ts";
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

/** Between the names of tools that one attempt calls, where others have a model. No name has it. */
const NAMES_SEPARATOR = ",";

/** One tool or more as the target of an attempt: their calls cost nothing and read no tokens. `callsTimeoutMs`: of all calls together. */
function toolTarget(tools: readonly [Tool, ...Tool[]], callsTimeoutMs: number): Target {
  const names = new Set(tools.map(({ name }) => name));
  return {
    ...UNCONFIGURED_TARGET,
    upstream: TOOL_UPSTREAM,
    gate: TOOL_UPSTREAM,
    model: [...names].join(NAMES_SEPARATOR),
    price: { inputPicoUsd: 0, cachedInputPicoUsd: 0, outputPicoUsd: 0 },
    maxInFlight: PARALLEL_MAX,
    // The time of the calls, one after another, and that of waiting for a permit.
    timeoutMs: Math.min(callsTimeoutMs + TOOL_QUEUE_MS_MAX, TIMEOUT_MS_MAX),
    attemptsMax: TOOL_ATTEMPTS_MAX,
    tool: { idempotent: tools.every(({ idempotent }) => idempotent) },
  };
}

/** The targets of models by the name that clients use. */
export type ModelTargets = { targets: Pick<RunTargets, "resolve"> };

export class RunTargets {
  readonly #config: ModelConfig;
  #settings: RunSettings;
  /** By the model as clients name it, of calls that any upstream can take. */
  readonly #known = new Map<string | null, Target | Reason>();
  /** The same of calls that need an endpoint. */
  readonly #knownAt = new Map<Endpoint, Map<string | null, Target | Reason>>();

  constructor(config: ModelConfig, settings: RunSettings) {
    this.#config = config;
    this.#settings = settings;
  }

  /** The settings of the run have changed. */
  changed(settings: RunSettings): void {
    this.#settings = settings;
    this.#known.clear();
    this.#knownAt.clear();
  }

  /**
   * Where calls for a model go, or why the model is refused; null = the default model.
   * @param endpoint What the upstream must have; null = any upstream will do.
   */
  resolve(model: string | null, endpoint: Endpoint | null = null): Target | Reason {
    const resolved = this.#resolvedAt(endpoint);
    const known = resolved.get(model);
    if (known !== undefined) return known;
    const target = this.#lookUp(model, endpoint);
    if (resolved.size < RUN_TARGETS_CACHED_MAX) resolved.set(model, target);
    return target;
  }

  #resolvedAt(endpoint: Endpoint | null): Map<string | null, Target | Reason> {
    if (endpoint === null) return this.#known;
    const known = this.#knownAt.get(endpoint) ?? new Map<string | null, Target | Reason>();
    this.#knownAt.set(endpoint, known);
    return known;
  }

  #lookUp(model: string | null, endpoint: Endpoint | null): Target | Reason {
    const tool = toolOfModel(model);
    if (tool !== null) return this.#tool(tool);
    const found = targetOf(model, this.#settings, this.#config, endpoint);
    return found.ok ? found.target : found.reason;
  }

  /** Where the calls of a tool go, or that the run has none of this name. */
  #tool(name: string): Target | Reason {
    const { tools } = this.#settings;
    const tool = this.ofTools(name.split(NAMES_SEPARATOR));
    if (tool !== null) return tool;
    const names = tools.map((each) => each.name).join(", ");
    return { reason: "not_found", what: `tool "${name}"`, hint: `this run has ${names === "" ? "no tools" : names}` };
  }

  /** Where an attempt goes that calls these tools; null if the run has not all of them. */
  ofTools(names: readonly string[]): Target | null {
    const found = names.map((name) => this.#settings.tools.find((each) => each.name === name));
    const [first, ...others] = found.filter((tool) => tool !== undefined);
    if (first === undefined || others.length < names.length - 1) return null;
    const timeoutMs = others.reduce((sum, tool) => sum + tool.timeoutMs, first.timeoutMs);
    return toolTarget([first, ...others], timeoutMs);
  }

  /** Where calls of a group go that name this one of its models; null if it is refused by now. */
  ofGroup({ models }: GroupHeader, modelIndex: number): Target | null {
    const target = this.resolve(models[modelIndex] ?? null);
    return "reason" in target ? null : target;
  }

  /** Where an attempt went that an earlier instance started. */
  ofLease({ upstream, model, key }: StoredLease): Target {
    if (upstream === TOOL_UPSTREAM) {
      const target = this.#tool(model);
      return "reason" in target ? { ...UNCONFIGURED_TARGET, upstream, gate: upstream, model } : target;
    }
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
