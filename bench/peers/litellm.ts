/** LiteLLM's proxy as its own command starts it: one process, no database, no request log. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MODEL } from "../load/prompts.ts";
import { freePort, startProgram, type Server } from "../servers/process.ts";
import { programOf, type Package } from "./environment.ts";
import { type Peer, PEER_KEY, type PeerOptions } from "./peer.ts";

export const LITELLM_PACKAGE: Package = {
  name: "litellm",
  version: "1.106.2",
  extra: "proxy",
  // Its cache on disk.
  others: ["diskcache==5.6.3"],
  pythonMinorMin: 9,
};

export const LITELLM_HEADERS = { authorization: `Bearer ${PEER_KEY}` };

/** A model of its configuration: `name` is what clients call. */
export type LitellmModel = { name: string; params: Record<string, unknown> };

export type LitellmOptions = {
  models: readonly LitellmModel[];
  router?: Record<string, unknown>;
  settings?: Record<string, unknown>;
};

/** The bench's model at an upstream that speaks OpenAI's protocol. */
export function benchModel(upstreamUrl: string, params: Record<string, unknown> = {}): LitellmModel {
  return {
    name: MODEL,
    params: { model: `openai/${MODEL}`, api_base: `${upstreamUrl}/v1`, api_key: "bench", ...params },
  };
}

/** Every JSON text is a YAML text. */
function configOf({ models, router = {}, settings = {} }: LitellmOptions): string {
  return JSON.stringify({
    model_list: models.map(({ name, params }) => ({ model_name: name, litellm_params: params })),
    router_settings: { num_retries: 0, ...router },
    litellm_settings: settings,
    general_settings: { disable_spend_logs: true },
  });
}

export async function startLitellm(options: LitellmOptions): Promise<Server> {
  const program = programOf(LITELLM_PACKAGE, "litellm");
  const folder = mkdtempSync(join(tmpdir(), "fanout-bench-litellm-"));
  const config = join(folder, "config.yaml");
  writeFileSync(config, configOf(options));
  const port = await freePort();
  const args = ["--config", config, "--host", "127.0.0.1", "--port", String(port), "--num_workers", "1"];
  const env = {
    LITELLM_MASTER_KEY: PEER_KEY,
    // Its list of prices is otherwise fetched.
    LITELLM_LOCAL_MODEL_COST_MAP: "True",
    // A line for every request would be measured too.
    LITELLM_DISABLE_ACCESS_LOG_PATHS: "/v1/chat/completions,/v1/messages",
    PYTHONUNBUFFERED: "1",
  };
  const portIn = (printed: string): number | null => (printed.includes("Uvicorn running on") ? port : null);
  const removeFolder = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    const server = await startProgram({
      command: program,
      args: [...args, "--telemetry", "False"],
      env,
      portIn,
      prints: "stderr",
    });
    return {
      ...server,
      [Symbol.asyncDispose]: async () => {
        await server[Symbol.asyncDispose]();
        removeFolder();
      },
    };
  } catch (error) {
    removeFolder();
    throw error;
  }
}

function optionsOf({ upstreamUrl, budget }: PeerOptions): LitellmOptions {
  if (budget === null) return { models: [benchModel(upstreamUrl)] };
  const { input, output } = budget.prices;
  const cost = { input_cost_per_token: input / 1e6, output_cost_per_token: output / 1e6 };
  return { models: [benchModel(upstreamUrl, { ...cost, max_budget: budget.usd, budget_duration: "1d" })] };
}

export const litellm: Peer = {
  title: "LiteLLM",
  about:
    "Python, one process with its defaults, no database, no request log. Its budget is `max_budget` of a deployment, in memory",
  install: LITELLM_PACKAGE,
  model: MODEL,
  budget: "soft",
  rewritesStreams: true,
  isSlow: true,
  config: (place) => configOf(optionsOf(place)),
  start: async (options) => ({ ...(await startLitellm(optionsOf(options))), headers: LITELLM_HEADERS }),
};
