/**
 * `node test/clients/python/install.ts`: installs the Python clients as their locks say. `--lock` first locks their newest
 * versions. Needs python3 and uv: pip3 install --target test/support/python-packages --requirement test/support/python-requirements.txt
 */
import { parseArgs } from "node:util";
import { ENVIRONMENT_NAMES } from "./clients.ts";
import { install, lock } from "./environments.ts";

const { values } = parseArgs({ options: { lock: { type: "boolean", default: false } } });
for (const name of ENVIRONMENT_NAMES) {
  if (values.lock) lock(name);
  install(name);
}
