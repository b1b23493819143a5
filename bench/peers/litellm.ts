/** LiteLLM's proxy as its own command starts it: one process, no database, no request log. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MODEL } from "../load/prompts.ts";
import { freePort, startProgram, type Server } from "../servers/process.ts";
import { peerProgram } from "./environment.ts";

/** The key of its operator, which every client sends. */
const MASTER_KEY = "sk-bench-guards-nothing";

export const LITELLM_HEADERS = { authorization: `Bearer ${MASTER_KEY}` };

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

export async function startLitellm({ models, router = {}, settings = {} }: LitellmOptions): Promise<Server> {
  const program = peerProgram("litellm");
  const folder = mkdtempSync(join(tmpdir(), "fanout-bench-litellm-"));
  const config = join(folder, "config.yaml");
  const list = models.map(({ name, params }) => ({ model_name: name, litellm_params: params }));
  // Every JSON text is a YAML text.
  writeFileSync(
    config,
    JSON.stringify({
      model_list: list,
      router_settings: { num_retries: 0, ...router },
      litellm_settings: settings,
      general_settings: { disable_spend_logs: true },
    }),
  );
  const port = await freePort();
  const args = ["--config", config, "--host", "127.0.0.1", "--port", String(port), "--num_workers", "1"];
  const env = {
    LITELLM_MASTER_KEY: MASTER_KEY,
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
