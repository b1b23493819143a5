/**
 * Whether a deployment binds Workers AI, and the upstream that answers over it: a gateway without any provider key answers with a real
 * model. Pure.
 */
import { CONFIG_PARTS_MAX } from "../../src/limits.ts";
import { combinedParts, splitVariableOf } from "../../src/providers/config/parts.ts";
import { AI_BINDING } from "../../src/providers/kinds/workers-ai.ts";
import { isRecord } from "../../src/text/json/record.ts";
import type { RemoteWorker } from "./account.ts";
import type { DeployOptions } from "./options.ts";
import type { WorkerConfig } from "./worker-config.ts";

/** The name and the kind of the upstream that a deployment adds. */
const NAME = "workers-ai";
/**
 * The model of calls that name none. It answers without thinking first, so that a small cap still leaves a text, it needs no paid plan, and
 * it takes tools and JSON mode. Source: developers.cloudflare.com/workers-ai/models, August 2026.
 */
export const WORKERS_AI_MODEL = `${NAME}/@cf/meta/llama-3.3-70b-instruct-fp8-fast`;

type Input = {
  options: Pick<DeployOptions, "usesWorkersAi" | "drop">;
  config: Pick<WorkerConfig, "vars">;
  local: Record<string, string>;
  secretsFile: string;
  worker: RemoteWorker | null;
};

/** What of Workers AI a deployment has: its binding, new variables for the secrets file, and sentences for the operator. */
export type WorkersAi =
  | { ok: true; binds: boolean; variables: Record<string, string>; notes: readonly string[] }
  | { ok: false; message: string };

/**
 * The binding is there if it is asked for, if an upstream that is known here answers over it, or if the Worker has it: a second deployment
 * keeps it. An upstream is added only to upstreams that are known here: parts of a variable that only the Worker has would be lost.
 */
export function workersAiOf(input: Input): WorkersAi {
  const { options, local, config, worker } = input;
  const known = upstreamsIn({ ...config.vars, ...local });
  const isUsed = Object.values(known).some((upstream) => isRecord(upstream) && upstream["kind"] === NAME);
  const isBound = worker?.bindings.some(({ name, type }) => name === AI_BINDING && type === "ai") === true;
  const stays = isBound && !options.drop.includes(AI_BINDING);
  if (!options.usesWorkersAi || isUsed) {
    return { ok: true, binds: options.usesWorkersAi || isUsed || stays, variables: {}, notes: [] };
  }
  return withUpstream(input, known);
}

function withUpstream({ local, config, secretsFile, worker }: Input, known: Record<string, unknown>): WorkersAi {
  const names = Object.keys({ ...config.vars, ...local });
  const isThere = (worker?.secrets ?? []).some(isUpstreams);
  if (!names.some(isUpstreams) && isThere) {
    const note = `Workers AI is bound. The Worker's UPSTREAMS stay as they are, and answer with it if one of them has the kind ${NAME}.`;
    return { ok: true, binds: true, variables: {}, notes: [note] };
  }
  if (NAME in known) {
    const message = `--workers-ai would add an upstream named ${NAME}, and UPSTREAMS has another of that name. Rename it, or give it the kind ${NAME}.`;
    return { ok: false, message };
  }
  const part = freePart(names);
  if (part === null)
    return { ok: false, message: `UPSTREAMS has ${CONFIG_PARTS_MAX} parts, and --workers-ai needs one.` };
  const isFirst = part === "UPSTREAMS";
  const isNamed = names.includes("DEFAULT_MODEL") || worker?.secrets.includes("DEFAULT_MODEL") === true;
  const variables = {
    [part]: JSON.stringify({ [NAME]: { kind: NAME } }),
    ...(isFirst && !isNamed ? { DEFAULT_MODEL: WORKERS_AI_MODEL } : {}),
  };
  const note = `The gateway answers with Cloudflare's own models over Workers AI: see ${part} in ${secretsFile}. 10,000 neurons a day are free; on a paid plan, more cost $0.011 per 1,000.`;
  return { ok: true, binds: true, variables, notes: [note] };
}

/** Whether a variable configures upstreams. */
export const isUpstreams = (name: string): boolean => splitVariableOf(name) === "UPSTREAMS";

/** The first variable that may hold more upstreams; null if there is none. */
function freePart(names: readonly string[]): string | null {
  if (!names.some(isUpstreams)) return "UPSTREAMS";
  const parts = Array.from({ length: CONFIG_PARTS_MAX }, (_, at) => `UPSTREAMS_${at + 1}`);
  return parts.find((part) => !names.includes(part)) ?? null;
}

/** The upstreams by their names; none where they cannot be read, which the gateway itself reports. */
function upstreamsIn(vars: Record<string, unknown>): Record<string, unknown> {
  const combined = combinedParts("UPSTREAMS", vars);
  return combined.ok && isRecord(combined.value) ? combined.value : {};
}
