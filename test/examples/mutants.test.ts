/**
 * Programs with one fault each, against the model with roles: a program that sends too little gets useless answers, and what the
 * other tests of the programs assert does not hold.
 */
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startWorld, type World } from "../contract/world.ts";
import { hasPython } from "../support/python.ts";
import { roleModel } from "../support/role-model/answer.ts";
import { startTools, type RoleTools } from "../support/role-model/tools.ts";
import { unusedPort } from "../support/unused-port.ts";
import { exampleAt, startProgram, type Ended } from "./program.ts";

let tools: RoleTools;
let world: World;
let folder: string;
beforeAll(async () => {
  tools = await startTools();
  const failsSecurity = (prompt: string) =>
    prompt.startsWith("Look for what an attacker") && prompt.includes("ESCALATE");
  world = await startWorld((call) => (failsSecurity(call.prompt) ? { status: 400 } : roleModel(call)), {
    TOOL_HOSTS: new URL(tools.url).host,
    WEBHOOK_URL: `http://127.0.0.1:${WEBHOOK_PORT}/`,
    WEBHOOK_SECRET,
  });
  folder = await mkdtemp(join(tmpdir(), "fanout-mutants-"));
  await cp(exampleAt("."), join(folder, "examples"), { recursive: true });
  await symlink(exampleAt("../stubs"), join(folder, "stubs"));
  await writeFile(join(folder, "auth.py"), "import ast\n\n\ndef login(text):\n    return eval(text)\n");
  await writeFile(join(folder, "client.py"), "for attempt in range(3):\n    send(body, idempotency_key=KEY)\n");
});
afterAll(async () => {
  await world.stop();
  await tools.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Where the orchestrator receives the webhook of the gateway. */
const WEBHOOK_PORT = await unusedPort();
const WEBHOOK_SECRET = "a secret of the operator";

type Mutant = {
  name: string;
  program: string;
  args: string[];
  file: string;
  /** What the fault changes: this text of the file is replaced. */
  from: string;
  to: string;
  /** What the sound program prints, and the mutant does not. */
  holds: RegExp;
};

const MUTANTS: Mutant[] = [
  {
    name: "coordinator without the text of a file",
    program: "coordinator",
    args: ["review auth.py"],
    file: "coordinator/agents.py",
    from: 'stored = {"context": llm_context(text_of(files))} if files else {}',
    to: "stored = {}",
    holds: /edit 1\.1 of auth\.py by codex: .* \(approved\)/,
  },
  {
    name: "team without a request in round 1",
    program: "team",
    args: ["--files", "client.py"],
    file: "team/members.py",
    from: '"Answer the question again: keep your answer, or correct it. {}").format(',
    to: '"{}").format(',
    holds: /Verdict: trusted/,
  },
  {
    name: "team without a rubric",
    program: "team",
    args: ["--files", "client.py"],
    file: "team/members.py",
    from: 'RUBRIC = """',
    to: 'RUBRIC = " "\n_ = """',
    holds: /Verdict: trusted/,
  },
  {
    name: "compiler that plans without the question",
    program: "compiler",
    args: [],
    file: "compiler/__main__.py",
    from: 'GOAL.format(question), "", [], ""',
    to: 'GOAL.format(""), "", [], ""',
    holds: /ANSWER: The first is 3 m taller/,
  },
  {
    name: "compiler that drops the functions' names",
    program: "compiler",
    args: [],
    file: "compiler/__main__.py",
    from: '"{}({})".format(step["tool"], ',
    to: '"{}({})".format("step", ',
    holds: /ANSWER: The first is 3 m taller/,
  },
  {
    name: "compiler that joins without the results",
    program: "compiler",
    args: [],
    file: "compiler/__main__.py",
    from: 'results = "\\n".join(listed)',
    to: 'results = ""',
    holds: /ANSWER: The first is 3 m taller/,
  },
  {
    name: "compiler that does not have its plan run while it is written",
    program: "compiler",
    args: [],
    file: "compiler/__main__.py",
    from: "return llm_plan(goal, stream=True, max_tasks=STEPS_MAX)\n    except",
    to: "return llm_plan(goal, run=False, max_tasks=STEPS_MAX)\n    except",
    holds: /ANSWER: The first is 3 m taller/,
  },
  {
    name: "orchestrator without the change",
    program: "orchestrator",
    args: ["Retry for ever, without a key."],
    file: "orchestrator/__main__.py",
    from: 'prompt = "{}\\n\\n# The change\\n{}\\n\\nSay accept',
    to: 'prompt = "{0}\\n\\nSay accept',
    holds: /security \| P0 \| COMPLETE \| reviews\/security\.json \| waits have no bound/,
  },
  {
    name: "orchestrator that ignores P0",
    program: "orchestrator",
    args: ["ESCALATE this.", "--webhook", String(WEBHOOK_PORT)],
    file: "orchestrator/__main__.py",
    from: '"tier": agent["tier"], "prompt": prompt',
    to: '"tier": "P2", "prompt": prompt',
    holds: /Notified by group\.escalated of .*: P0, upstream_error\.\nA person must decide: escalated by security\n/,
  },
];

async function run({ program, args }: Mutant): Promise<Ended> {
  const tool = (name: string, argument: string) => ({
    name,
    url: `${tools.url}/${name}`,
    description: "does it",
    parameters: { type: "object", properties: { [argument]: { type: "string" } } },
  });
  const access = await world.openRun({
    budget: { usd: 1 },
    tools: [tool("search", "query"), tool("math", "expression")],
  });
  const env = { FANOUT_URL: world.gateway.url, FANOUT_TOKEN: access.token, FANOUT_MODEL: "up-1", WEBHOOK_SECRET };
  return await startProgram("python3", [join(folder, "examples", program), ...args], env, folder).ended;
}

describe.runIf(hasPython)("a program", () => {
  it.each(MUTANTS)("that is a $name does not do its work, which the sound one does", async (mutant) => {
    const path = join(folder, "examples", mutant.file);
    const sound = await readFile(path, "utf8");
    expect((await run(mutant)).printed).toMatch(mutant.holds);
    expect(sound.split(mutant.from)).toHaveLength(2);
    await writeFile(
      path,
      sound.replace(mutant.from, () => mutant.to),
    );
    expect((await run(mutant)).printed).not.toMatch(mutant.holds);
    await writeFile(path, sound);
  });
});
