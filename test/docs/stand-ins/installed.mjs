/** `npm install` and `pip install` of the pages' shell: fails unless what is named is a stand-in, in the version named. */
import { readFileSync } from "node:fs";

const versions = JSON.parse(readFileSync(new URL("versions.json", import.meta.url), "utf8"));
const [tool, , ...names] = process.argv.slice(2);
for (const name of names.filter((argument) => !argument.startsWith("-"))) {
  const [, plain, version] = /^(@?[^@=]+)(?:==?|@)?(.*)$/.exec(name) ?? [];
  const known = versions[tool][plain];
  if (known === undefined || (version !== "" && version !== known)) {
    console.error(`${name} is no stand-in; there is ${plain} ${known}`);
    process.exitCode = 1;
  }
}
