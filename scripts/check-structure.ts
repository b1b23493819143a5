/**
 * Checks the structure of the code: the allowed imports in src/, durable-objects/, cli/ and ui/, the map of CONTRIBUTING.md with its floors, which lists cli/ too, and
 * that each rule of the linter is for files that exist. Prints a sentence for each violation and exits with status 1.
 */
import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { unusedRules, violations } from "./dependency-rule.ts";
import { circles, roomsOf, unlisted, upwardImports } from "./floors.ts";

const cwd = fileURLToPath(new URL("..", import.meta.url));
const gateway = globSync(["src/**/*.ts", "durable-objects/**/*.ts"], { cwd, exclude: ["**/*.d.ts"] });
const LINTER = ".oxlintrc.json";
const fences = z.object({ overrides: z.array(z.object({ files: z.array(z.string()) })) });
const { overrides } = fences.parse(JSON.parse(readFileSync(`${cwd}/${LINTER}`, "utf8")));
const fencesOfNothing = overrides
  .flatMap(({ files }) => files)
  .filter((pattern) => globSync(pattern, { cwd }).length === 0)
  .map((pattern) => `${LINTER}: no file fits ${pattern}, so its rules hold nowhere`);
const sourcesOf = (paths: readonly string[]): { path: string; source: string }[] =>
  paths
    .toSorted()
    .map((path) => ({ path: path.replaceAll("\\", "/"), source: readFileSync(`${cwd}/${path}`, "utf8") }));
const sources = sourcesOf(gateway);
const command = sourcesOf(globSync("cli/**/*.ts", { cwd }));
const page = sourcesOf(globSync("ui/**/*.{ts,tsx}", { cwd, exclude: ["**/*.d.ts"] }));
const mapped = [...sources, ...command];
const ruled = [...mapped, ...page];
const rooms = roomsOf(readFileSync(`${cwd}/CONTRIBUTING.md`, "utf8"));

const broken = [
  ...ruled.flatMap(({ path, source }) => violations(path, source)),
  ...unusedRules(ruled),
  ...fencesOfNothing,
  ...unlisted(
    rooms,
    mapped.map(({ path }) => path),
  ),
  ...upwardImports(rooms, mapped),
  ...circles(mapped),
];

for (const sentence of broken) console.error(sentence);
console.log(`structure: ${mapped.length} files, ${broken.length} broken rules`);
process.exitCode = broken.length === 0 ? 0 : 1;
