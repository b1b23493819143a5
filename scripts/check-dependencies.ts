/** Checks the imports of src/ and durable-objects/ against the dependency rule. Exit status 1 and a list when broken. */
import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { violations } from "./dependency-rule.ts";

const cwd = fileURLToPath(new URL("..", import.meta.url));
const paths = globSync(["src/**/*.ts", "durable-objects/**/*.ts"], { cwd, exclude: ["**/*.d.ts"] });
const broken = paths.toSorted().flatMap((path) => violations(path, readFileSync(`${cwd}/${path}`, "utf8")));

for (const sentence of broken) console.error(sentence);
console.log(`dependency rule: ${paths.length} files, ${broken.length} broken imports`);
process.exitCode = broken.length === 0 ? 0 : 1;
