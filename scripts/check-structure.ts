/**
 * Checks the structure of the code: the allowed imports in src/ and durable-objects/, and the number of files per folder. Prints a
 * sentence for each violation and exits with status 1. The linter checks for circles of imports (`import/no-cycle`).
 */
import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { unusedRules, violations } from "./dependency-rule.ts";
import { crowdedFolders } from "./folder-rule.ts";

const cwd = fileURLToPath(new URL("..", import.meta.url));
const gateway = globSync(["src/**/*.ts", "durable-objects/**/*.ts"], { cwd, exclude: ["**/*.d.ts"] });
const tools = globSync(["bin/**/*.mjs", "scripts/**/*.ts", "bench/**/*.ts"], { cwd });
const slashed = (path: string): string => path.replaceAll("\\", "/");
const sources = gateway
  .toSorted()
  .map((path) => ({ path: slashed(path), source: readFileSync(`${cwd}/${path}`, "utf8") }));

const broken = [
  ...sources.flatMap(({ path, source }) => violations(path, source)),
  ...unusedRules(sources),
  ...crowdedFolders([...gateway, ...tools].map(slashed)),
];

for (const sentence of broken) console.error(sentence);
console.log(`structure: ${gateway.length + tools.length} files, ${broken.length} broken rules`);
process.exitCode = broken.length === 0 ? 0 : 1;
