/**
 * Recipes: programs of Python clients that fan out what they could not without the gateway. Sub-models use tools of the run, and see
 * images under a limit. Each runs as a process of its own; what it spends is what its provider bills.
 */
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { reportLeftOut } from "../../support/left-out.ts";
import type { Mind } from "../../support/provider.ts";
import { startToolServer, type ToolServer } from "../../support/tool-server.ts";
import { startClients, type Clients } from "../world.ts";
import { ENVIRONMENT_NAMES, type EnvironmentName } from "./clients.ts";
import { missingEnvironment } from "./environments.ts";
import { DSPY_IMAGES_MIND, RLM_TOOLS_MIND, VERIFIERS_MIND } from "./minds.ts";
import { runProgram, TIME_MAX_MS, variablesOf } from "./process.ts";

/** As a sandbox has it: a file beside its programs. */
const STUB = join(import.meta.dirname, "../../../stubs/python/fanout.py");

for (const name of ENVIRONMENT_NAMES) reportLeftOut(`the recipes with ${name}`, missingEnvironment(name));

let clients: Clients;
let tools: ToolServer;
let home: string;
beforeAll(async () => {
  tools = await startToolServer();
  clients = await startClients({ TOOL_HOSTS: tools.host });
  home = await mkdtemp(join(tmpdir(), "fanout-recipes-"));
  await copyFile(STUB, join(home, "fanout.py"));
});
beforeEach(() => {
  clients.provider.forget();
  tools.forget();
});
afterAll(async () => {
  await Promise.all([clients.stop(), tools.stop()]);
  await rm(home, { recursive: true, force: true });
});

type Recipe = {
  name: string;
  environment: EnvironmentName;
  program: string;
  mind: Mind;
  answer: string;
  /** Calls of models, and of tools. */
  made: { calls: number; tools: number };
};

const RECIPES: readonly Recipe[] = [
  {
    name: "rlm, whose code calls llm_batch(prompts, tools=…)",
    environment: "openai-3",
    program: "rlms_tools_program.py",
    mind: RLM_TOOLS_MIND,
    answer: "12",
    made: { calls: 2 + 2 * 2, tools: 2 },
  },
  {
    name: "dspy.RLM, whose code has another model look at images",
    environment: "openai-2",
    program: "dspy_images_program.py",
    mind: DSPY_IMAGES_MIND,
    answer: "red blue green",
    made: { calls: 2 + 3, tools: 0 },
  },
  {
    name: "verifiers, whose harness has sub-models use tools",
    environment: "openai-2",
    program: "verifiers_tools_program.py",
    mind: VERIFIERS_MIND,
    answer: "18",
    made: { calls: 3 * 2 + 1, tools: 3 },
  },
];

const report = z.looseObject({ answer: z.coerce.string() });
/** The provider's model calls the tool with a city, and repeats its result. */
const PARAMETERS = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };

describe.each(RECIPES)("$name", { timeout: TIME_MAX_MS }, ({ environment, program, mind, answer, made }) => {
  it.skipIf(missingEnvironment(environment) !== null)(
    "answers by what its sub-models say, within its budget",
    async () => {
      clients.provider.think(mind);
      const letters = { name: "letters", url: `http://${tools.host}/letters`, parameters: PARAMETERS };
      const settings = { budget: { usd: 1 }, default_model: "up/echo", tools: [letters] };
      const run = await clients.openRun(settings);
      const variables = { ...variablesOf(clients, run), MODEL: "up/mind", VISION_MODEL: "up/gpt-4o-mind" };
      const { status, printed, complaint } = await runProgram({ environment, program, home }, variables);
      expect(status, complaint).toBe(0);
      expect(report.parse(JSON.parse(printed)).answer).toBe(answer);
      const bill = clients.provider.bill();
      expect({ calls: bill.calls, tools: tools.requests.length }).toEqual(made);
      const nanoUsd = await run.spentNanoUsd();
      const { calls, prompt_tokens: prompt, completion_tokens: completion } = await run.budget();
      const ledger = { calls: calls.spent, prompt: prompt.spent, completion: completion.spent, nanoUsd };
      expect(ledger).toEqual(bill);
    },
  );
});
