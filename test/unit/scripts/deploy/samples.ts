/** A configuration and options of deployments, for tests. */
import type { DeployOptions } from "../../../../scripts/deploy/options.ts";
import type { WorkerConfig } from "../../../../scripts/deploy/worker-config.ts";

export const NO_OPTIONS: DeployOptions = {
  isDryRun: false,
  isFree: false,
  hasNoR2: false,
  usesWorkersAi: false,
  isImmediate: false,
  makesAdminKey: false,
  makesSigningKey: false,
  name: null,
  environment: null,
  isBuild: false,
  drop: [],
};

type Over = {
  vars?: Record<string, unknown> | undefined;
  buckets?: Record<string, string>;
  jurisdiction?: WorkerConfig["jurisdiction"];
};

export function configOf(over: Over = {}) {
  const config: WorkerConfig = {
    name: "fanout",
    accountId: null,
    vars: over.vars ?? {},
    keepsVars: false,
    bindings: ["RUN", "FILES", "CF_VERSION_METADATA"],
    buckets: over.buckets ?? { FILES: "fanout-files" },
    usesWorkersDev: true,
    jurisdiction: over.jurisdiction ?? null,
  };
  return config;
}
