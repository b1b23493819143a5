/**
 * Coding agents as whole programs, started by the blocks of the guide: a session of ten turns with nine commands, whose
 * tokens are counted three times, and a budget that ends in the middle of it.
 */
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { blocksOf } from "../../docs/blocks.ts";
import { reportLeftOut } from "../../support/left-out.ts";
import { startClients, type ClientRun, type Clients } from "../world.ts";
import { CODING_AGENTS, type CodingAgent } from "./agents.ts";

const FOLDER = import.meta.dirname;
const GUIDE = readFileSync(join(FOLDER, "../../../docs/coding-agents.md"), "utf8");
const BLOCKS = blocksOf(GUIDE);
/** Where the guide's files look for the gateway. */
const DEFAULT_URL = "http://127.0.0.1:8787";

const versions = z
  .object({ dependencies: z.record(z.string(), z.string()) })
  .parse(JSON.parse(readFileSync(join(FOLDER, "package.json"), "utf8"))).dependencies;

/** Commands of a session. The turn after the last one ends it. */
const COMMANDS = 9;
const TURNS = COMMANDS + 1;
const LAST_WORDS = "All of them are written.";
/** Fewer calls than a session makes. */
const CALLS_OF_A_SMALL_BUDGET = 4;
/** Far more than a session takes on a busy machine. */
const TIME_MAX_MS = 400_000;

let clients: Clients;
let home: string;
beforeAll(async () => {
  // The models that the guide names; the model behind them is told what to say.
  clients = await startClients({ ROUTES: { "claude-coder": ["claude/claude-mind"], coder: ["up/mind"] } });
});
beforeEach(async () => {
  clients.provider.forget();
  home = await mkdtemp(join(tmpdir(), "fanout-agent-"));
  return () => rm(home, { recursive: true, force: true });
});
afterAll(() => clients.stop());

type Ended = { status: number | null; printed: string; complaint: string };

/** Runs the guide's blocks of an agent in a home and a folder of its own; of what it has started, nothing is left. */
async function session(agent: CodingAgent, { token }: ClientRun): Promise<Ended> {
  clients.provider.think((messages) => {
    const done = messages.filter(({ role }) => role === "tool").length;
    return done < COMMANDS ? agent.call(`echo ${done + 1} >> steps.txt`) : LAST_WORDS;
  });
  const work = join(home, "work");
  await mkdir(work);
  if (agent.file !== null) {
    const file = BLOCKS.find(({ info }) => info === agent.file) ?? expect.fail(`the guide has no ${agent.file}`);
    await writeFile(join(work, agent.file), file.code.replaceAll(DEFAULT_URL, clients.gateway.url));
  }
  const block = BLOCKS.find(({ language, info, code }) => language === "sh" && info === "" && begins(code, agent));
  const child = spawn("sh", ["-euc", block?.code ?? expect.fail(`the guide does not start ${agent.program}`)], {
    cwd: work,
    env: {
      PATH: `${join(FOLDER, "node_modules/.bin")}:${join(FOLDER, "../../../node_modules/.bin")}:${process.env["PATH"]}`,
      HOME: home,
      FANOUT_URL: clients.gateway.url,
      FANOUT_TOKEN: token,
      TASK: "Write the numbers from 1 to 9 to steps.txt, one command each.",
    },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const status = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => {
      endGroup(child.pid);
      resolve(code);
    });
  });
  const [code, printed, complaint] = await Promise.all([status, text(child.stdout), text(child.stderr)]);
  return { status: code, printed, complaint };
}

const begins = (code: string, { program }: CodingAgent): boolean =>
  code.split("\n").some((line) => line.startsWith(`${program} `));

function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // All of them have ended.
  }
}

/** What the run has spent, once nothing is reserved any more. */
async function ledgerOf(run: ClientRun) {
  const nanoUsd = await run.spentNanoUsd();
  const { calls, prompt_tokens, completion_tokens } = await run.budget();
  return { calls: calls.spent, prompt: prompt_tokens.spent, completion: completion_tokens.spent, nanoUsd };
}

/** The numbers that the commands of a session have written. */
const stepsOf = async (): Promise<string[]> =>
  (await readFile(join(home, "work/steps.txt"), "utf8")).trim().split("\n");
const upTo = (count: number): string[] => Array.from({ length: count }, (_, index) => `${index + 1}`);

for (const agent of CODING_AGENTS) {
  const isMissing = !existsSync(join(FOLDER, "node_modules/.bin", agent.program));
  reportLeftOut(agent.name, isMissing ? `${agent.package} (npm install in test/clients/agents)` : null);
  describe.skipIf(isMissing)(`${agent.name} ${versions[agent.package]}`, { timeout: TIME_MAX_MS }, () => {
    it("works ten turns under a limit; its own count, the ledger and the bill are the same", async () => {
      const run = await clients.openRun({ budget: { usd: agent.limitUsd } });
      const { status, printed, complaint } = await session(agent, run);
      expect(status, `${printed}\n${complaint}`).toBe(0);
      expect(printed).toContain(LAST_WORDS);
      expect(await stepsOf()).toEqual(upTo(COMMANDS));
      const bill = clients.provider.bill();
      expect(bill.calls).toBe(TURNS);
      expect(agent.tokensOf(printed)).toEqual({ prompt: bill.prompt, completion: bill.completion });
      expect(await ledgerOf(run)).toEqual(bill);
      expect(await run.refusals()).toBe(0);
    });

    it("ends with the gateway's reason where the budget ends", async () => {
      const run = await clients.openRun({ budget: { usd: agent.limitUsd, calls: CALLS_OF_A_SMALL_BUDGET } });
      const { status, printed, complaint } = await session(agent, run);
      expect(status).toBe(agent.refusedStatus ?? 1);
      const spent = `call budget exceeded: ${CALLS_OF_A_SMALL_BUDGET} spent, limit is ${CALLS_OF_A_SMALL_BUDGET}`;
      expect(`${printed}\n${complaint}`).toContain(spent);
      expect(printed).not.toContain(LAST_WORDS);
      expect(await stepsOf()).toEqual(upTo(CALLS_OF_A_SMALL_BUDGET));
      expect(clients.provider.bill().calls).toBe(CALLS_OF_A_SMALL_BUDGET);
      expect(await ledgerOf(run)).toEqual(clients.provider.bill());
    });
  });
}

it("the guide's table names the versions that are run", () => {
  const rows = [...GUIDE.matchAll(/^\| ([A-Za-z ]+) (\d+\.\d+\.\d+) \|/gm)].map(([, name, version]) => [name, version]);
  expect(rows).toEqual(CODING_AGENTS.map((agent) => [agent.name, versions[agent.package]]));
});
