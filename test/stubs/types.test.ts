/** The declarations for TypeScript: what they accept, what they reject, and that they declare the whole stub. */
import { spawnSync } from "node:child_process";
import { copyFile, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { batchBody } from "../../src/contract/batch.ts";
import { clientEvent } from "../../src/contract/events.ts";
import { queryBody } from "../../src/contract/query.ts";
import { runBody } from "../../src/contract/runs.ts";
import { ROOT } from "./language.ts";

/** What programs in a browser and on a server see of the platform. */
const PLATFORMS = {
  browsers: { lib: ["es2022", "dom"], types: [] },
  node: { lib: ["es2022"], types: ["node"] },
  workers: { lib: ["es2022"], types: ["@cloudflare/workers-types"] },
};

const PROGRAM = `
import { configure, FanoutError, FINAL, llmBudget, llmLog, llmQuery, llmQueryBatch, llmStream, llmUsage, toolCall, withRun } from "./fanout.mjs";
import type { GroupCompleted, Slot } from "./fanout.mjs";

configure({ url: "https://gateway.example", token: "t" });
const signal = new AbortController().signal;
const text: string = await llmQuery("p", { model: "up/m", max_tokens: 5, temperature: 0, priority: "high", signal });
const fromMessages: string = await llmQuery({ messages: [{ role: "user", content: [{ type: "text", text: "p" }] }], system: "s" });
const named: string = await llmQuery("p", "up/m", { max_tokens: 5 });
const several: string[] = await llmQuery(["a", { prompt: "b", id: "second", model: "up/m" }], { concurrency: 4 });
const results: string[] = await llmQueryBatch(new Set(["a"]), { idempotencyKey: "k", on_error: "abort" });
const byModel: string[] = await llmQueryBatch(["a"], "up/m", { concurrency: 2 });
const nulls: (string | null)[] = await llmQueryBatch(["a", [{ role: "user", content: "b" }]], { error_style: "null" });
for (const settled of await llmQueryBatch(["a"], { error_style: "settled" })) {
  const outcome: string = settled.status === "fulfilled" ? settled.value : settled.reason.code;
}
for await (const { index, result, error } of llmStream(["a"], { dedupe: true })) {
  const line: [number, string, boolean | undefined] = [index, result, error?.retryable];
}
const slots: AsyncGenerator<Slot, GroupCompleted | null, void> = llmStream(["a"]);
const answers: string[] = await withRun({ usd: 0.1, name: "part" }, async ({ llmQuery, llmQueryBatch, withRun, id, token }) => [
  await llmQuery("p"), id, token, ...(await llmQueryBatch(["a"])), ...(await withRun({ calls: 1 }, (run) => run.llmQuery(["a"]))),
]);
const left: number | null = (await llmBudget({ signal })).usd.remaining;
const calls: number | undefined = (await llmUsage({ reset: true })).calls_by_model["up/m"]?.calls;
const found: unknown = await toolCall("search", { q: "x" });
await llmLog("execution_result", { output: "42", hasError: false, data: [1] });
await FINAL({ any: ["value"] });
try {
  await llmQuery("p");
} catch (error) {
  if (error instanceof FanoutError && error.retryable) {
    const facts: [string, number | null, number | null] = [error.code, error.status, error.retryAfterMs];
  }
}
`;

const WRONG_USES = [
  `llmQueryBatch("a text")`,
  `llmStream("a text")`,
  `llmQuery([{ role: "user", content: "a message is no item" }])`,
  `llmQuery("p", { maxTokens: 5 })`,
  `llmQuery("p", { concurrency: 4 })`,
  `llmQuery("p", { max_tokens: 5 }, "up/m")`,
  `llmStream(["p"], 5)`,
  `withRun({ dollars: 1 }, async () => 1)`,
  `withRun({ usd: 1 })`,
  `llmQuery(7)`,
  `llmQuery({ prompt: "p", id: "a name" })`,
  `llmQueryBatch([{ prompt: "p", concurrency: 4 }])`,
  `llmQueryBatch(["p"], { error_style: "loud" })`,
  `const results: string[] = await llmQueryBatch(["p"], { error_style: "null" })`,
  `const text: string = await llmQuery(["p"])`,
  `const line: string = (await llmBudget()).usd.remaining`,
  `llmUsage(true)`,
  `llmLog("x", { outputs: "misspelt" })`,
  `llmLog({ output: "no type" })`,
  `configure("https://gateway.example")`,
  `(new FanoutError("m", "c")).code = "other"`,
];

const stub = (await import(pathToFileURL(join(ROOT, "stubs/javascript/fanout.mjs")).href)) as object;

const NAMES = "configure, FanoutError, llmBudget, llmLog, llmQuery, llmQueryBatch, llmStream, llmUsage, withRun";

it.each(Object.keys(PLATFORMS) as (keyof typeof PLATFORMS)[])("accept a typed program, on %s", async (platform) => {
  expect(await complaints(PROGRAM, platform)).toBe("");
});

it("reject each wrong use", async () => {
  const uses = WRONG_USES.map((use) => `{\n  // @ts-expect-error\n  ${use};\n}`);
  expect(await complaints(`import { ${NAMES} } from "./fanout.mjs";\n${uses.join("\n")}`, "node")).toBe("");
  const right = `// @ts-expect-error\nllmQuery("p");`;
  expect(await complaints(`import { llmQuery } from "./fanout.mjs";\n${right}`, "node")).toContain("TS2578");
});

it("declare every export of the stub, and no other", async () => {
  expect(await complaints(sameNames("keyof typeof stub", Object.keys(stub)), "node")).toBe("");
  expect(await complaints(sameNames("keyof typeof stub", Object.keys(stub).slice(1)), "node")).not.toBe("");
  expect(await complaints(sameNames("keyof typeof stub", [...Object.keys(stub), "more"]), "node")).not.toBe("");
});

it("know the fields of a request that the gateway knows, and no other", async () => {
  const own = ["signal", "idempotencyKey"];
  // What llmQueryBatch and llmMap make of their arguments.
  const content = ["prompts", "items", "over", "prompt", "messages", "agents", "n"];
  const batch = Object.keys(batchBody().shape).filter((name) => !content.includes(name));
  const query = Object.keys(queryBody().shape).filter((name) => name !== "prompt" && name !== "messages");
  const event = Object.keys(clientEvent().shape).filter((name) => name !== "event_type");
  expect(await complaints(sameNames("keyof stub.BatchOptions", [...batch, ...own]), "node")).toBe("");
  const run = Object.keys(runBody().shape).filter((name) => name !== "tools"); // Only the operator registers tools.
  const limits = ["usd", "calls", "prompt_tokens", "completion_tokens", "new_tokens"];
  expect(await complaints(sameNames("keyof stub.QueryOptions", [...query, ...own]), "node")).toBe("");
  expect(await complaints(sameNames("keyof stub.RunSettings", [...new Set([...run, ...limits]), ...own]), "node")).toBe(
    "",
  );
  expect(await complaints(sameNames("keyof stub.LogFields", event), "node")).toBe("");
});

/** A program that compiles only if the union `type` is of exactly these names. */
function sameNames(type: string, names: readonly string[]): string {
  const entries = names.map((name) => `${name}: true`);
  return `import type * as stub from "./fanout.mjs";\nexport const all: Record<${type}, true> = { ${entries.join(", ")} };`;
}

/** The compiler's messages for a program with the stub and its declarations beside it; empty if there are none. */
async function complaints(program: string, platform: keyof typeof PLATFORMS): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "fanout-types-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const compilerOptions = {
    ...PLATFORMS[platform],
    target: "es2022",
    module: "nodenext",
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    noEmit: true,
  };
  await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));
  await copyFile(join(ROOT, "stubs/javascript/fanout.mjs"), join(folder, "fanout.mjs"));
  await copyFile(join(ROOT, "stubs/typescript/fanout.d.mts"), join(folder, "fanout.d.mts"));
  await writeFile(join(folder, "program.mts"), program);
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["program.mts"] }));
  const tsc = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin/tsc");
  const { stdout, stderr } = spawnSync(process.execPath, [tsc, "-p", folder], { encoding: "utf8", cwd: folder });
  return stdout + stderr;
}
