/** The npm package: built, installed from its file into an empty folder, and used as its user would. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { packJavaScript } from "../../../scripts/pack/javascript.ts";
import { ROOT } from "../../../scripts/root.ts";
import { VERSION } from "../../../src/version.ts";
import { startGateway, type Gateway } from "../../support/gateway.ts";
import { run } from "./run.ts";

const TARBALL = `fanout-gateway-${VERSION}.tgz`;
/** The compiler of this clone: the package brings none. */
const TSC = join(ROOT, "node_modules/typescript/bin/tsc");

const PROGRAM = `
import { FanoutError, llmBudget, llmQueryBatch, withRun } from "fanout-gateway";

const answers: string[] = await llmQueryBatch(["one", "two"], { max_tokens: 50 });
const inside: string[] = await withRun({ calls: 1 }, ({ llmQueryBatch }) => llmQueryBatch(["three"]));
const left: number | null = (await llmBudget()).calls.remaining;
console.log(JSON.stringify([answers, inside, left, new FanoutError("m", "c").code]));
`;

const WRONG_USES = [
  `llmQueryBatch("one text")`,
  `llmQueryBatch(["one"], { maxTokens: 5 })`,
  `const text: string = (await llmBudget()).calls.remaining`,
];

const BOUND = `
import type { FanoutRun } from "fanout-gateway/binding";

export async function main({ llm }: { llm: FanoutRun }): Promise<string[]> {
  const { text, usage } = await llm.query({ prompt: "one", max_tokens: 50 });
  const { results, errors } = await llm.batch({ prompts: ["two"], error_style: "null" }, { idempotency_key: "k" });
  const found: (string | null)[] = results;
  const child = await llm.child({ budget: { usd: 0.01 } });
  const { outputs } = await child.dag({ tasks: [{ id: "a", prompt: text }] });
  return [text, ...found.map((each, at) => each ?? errors[at]?.code ?? ""), String(outputs["a"]), String(usage.cost)];
}
`;

const WRONG_BOUND_USES = [
  `llm.query({ prompts: ["one"] })`,
  `llm.batch({ prompts: ["one"], error_style: "throw" })`,
  `const cost: string = (await llm.query({ prompt: "one" })).usage`,
];

describe("the npm package", () => {
  const place = mkdtempSync(join(tmpdir(), "fanout-npm-"));
  const installed = join(place, "project/node_modules/fanout-gateway");
  let gateway: Gateway;

  beforeAll(async () => {
    packJavaScript(place);
    gateway = await startGateway();
    await run(place, "mkdir", ["project", "empty"]);
    await inProject("npm", ["install", "--offline", "--no-audit", "--no-fund", join(place, TARBALL)]);
  });
  afterAll(async () => {
    await gateway.stop();
    rmSync(place, { recursive: true, force: true });
  });

  const inProject = (command: string, args: readonly string[], vars?: Record<string, string>): Promise<string> =>
    run(join(place, "project"), command, args, vars);

  /** The compiler's opinion of a program in a folder that has the package. Fails if there is a complaint. */
  async function compile(name: string, program: string): Promise<void> {
    writeFileSync(join(place, "project", name), program);
    const options = ["--strict", "--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom", "--types", ""];
    await inProject(process.execPath, [TSC, ...options, "--outDir", "built", name]);
  }

  it("holds the stub, its types and the command, and nothing else", async () => {
    const listed = (await run(place, "tar", ["-tzf", TARBALL])).trim().split("\n");
    const library = ["fanout.mjs", "fanout.d.mts", "binding.d.mts", "package.json", "README.md", "LICENSE"];
    const command = ["bin/fanout.mjs", "stubs/script/fanout_script.mjs"];
    expect(listed.toSorted()).toEqual([...library, ...command].map((path) => `package/${path}`).toSorted());
  });

  it("brings no other package, runs nothing when it is installed, and may be published", async () => {
    const facts: unknown = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
    for (const name of ["dependencies", "devDependencies", "scripts", "private"])
      expect(facts).not.toHaveProperty(name);
    expect(facts).toMatchObject({ version: VERSION });
    const others = readdirSync(join(place, "project/node_modules")).filter((name) => !name.startsWith("."));
    expect(others).toEqual(["fanout-gateway"]);
  });

  it("makes a first batch three commands after an empty folder", async () => {
    const opened = await gateway.openRun();
    const commands = [
      `npm install --silent --offline ${join(place, TARBALL)}`,
      `export FANOUT_URL=${gateway.url} FANOUT_TOKEN=${opened.token}`,
      `node -e 'import("fanout-gateway").then(async (fanout) => console.log(await fanout.llmQueryBatch(["one", "two"])))'`,
    ];
    const printed = await run(join(place, "empty"), "bash", ["-ec", commands.join("\n")]);
    expect(printed.trim().split("\n").at(-1)).toBe("[ 'one', 'two' ]");
  });

  it("is byte for byte what the gateway serves", async () => {
    for (const [file, lang] of Object.entries({ "fanout.mjs": "javascript", "fanout.d.mts": "typescript" })) {
      const served = await (await fetch(`${gateway.url}/stubs/${lang}`)).text();
      expect(readFileSync(join(installed, file), "utf8")).toBe(served);
    }
  });

  it("runs a typed program, and its types reject wrong uses", async () => {
    await compile("program.mts", PROGRAM);
    const { token } = await gateway.openRun({ budget: { calls: 20 } });
    const vars = { FANOUT_URL: gateway.url, FANOUT_TOKEN: token };
    const printed = await inProject(process.execPath, ["built/program.mjs"], vars);
    expect(JSON.parse(printed)).toEqual([["one", "two"], ["three"], 17, "c"]);
    const uses = WRONG_USES.map((use) => `{\n  // @ts-expect-error\n  ${use};\n}`);
    const names = `import { llmBudget, llmQueryBatch } from "fanout-gateway";`;
    await compile("wrong.mts", `${names}\n${uses.join("\n")}`);
    await expect(compile("right.mts", `${names}\n// @ts-expect-error\nllmQueryBatch(["one"]);`)).rejects.toThrow(
      "TS2578",
    );
  });

  it("types the binding of a Worker, which has no other import of the package, and rejects wrong uses", async () => {
    await compile("bound.mts", BOUND);
    const uses = WRONG_BOUND_USES.map((use) => `{\n  // @ts-expect-error\n  ${use};\n}`);
    const names = `import type { FanoutRun } from "fanout-gateway/binding";\ndeclare const llm: FanoutRun;`;
    await compile("wrong-bound.mts", `${names}\n${uses.join("\n")}`);
  });

  it("runs the program of its README, and the command", async () => {
    const readme = readFileSync(join(ROOT, "packages/javascript/README.md"), "utf8");
    const [, program = ""] = /^```js\n(.*?)^```$/ms.exec(readme) ?? [];
    writeFileSync(join(place, "project/readme.mjs"), program);
    const { token } = await gateway.openRun();
    const vars = { FANOUT_URL: gateway.url, FANOUT_TOKEN: token };
    expect(await inProject(process.execPath, ["readme.mjs"], vars)).toBe("[ 'Again: one', 'Again: two' ]\n");
    expect(await inProject("npx", ["--offline", "fanout", "--help"])).toContain("fanout COMMAND");
  });
});
