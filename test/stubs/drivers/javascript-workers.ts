/**
 * Drives stubs/javascript/fanout.mjs inside plain workerd: starts workerd with the stub, javascript-worker.mjs and this
 * program's variables, and writes the Worker's response.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { serveWorkerd } from "../../support/workerd.ts";

const MODULES = ["javascript-worker.mjs", "javascript-commands.mjs", "../../../stubs/javascript/fanout.mjs"];
const VARIABLES = ["FANOUT_URL", "FANOUT_TOKEN", "FANOUT_TIMEOUT_S", "GATEWAY_URL", "GATEWAY_TOKEN"];

const folder = await mkdtemp(join(tmpdir(), "fanout-worker-"));
try {
  const configFile = join(folder, "config.capnp");
  await writeFile(configFile, config());
  const workerd = await serveWorkerd(configFile, ["--import-path=/"]);
  try {
    const answer = await fetch(workerd.url, { method: "POST", body: JSON.stringify(process.argv.slice(2)) });
    for await (const piece of answer.body ?? []) process.stdout.write(piece);
    if (!answer.ok) throw new Error(`the Worker answered ${answer.status}`);
  } catch (error) {
    console.error(workerd.output());
    throw error;
  } finally {
    await workerd.kill();
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}

function config(): string {
  const modules = MODULES.map((path) => {
    const name = path.slice(path.lastIndexOf("/") + 1);
    return `(name = "${name}", esModule = embed "${fileURLToPath(new URL(path, import.meta.url))}")`;
  });
  // A variable that is not set would be the text "null".
  const set = VARIABLES.filter((name) => (process.env[name] ?? "") !== "");
  const bindings = set.map((name) => `(name = "${name}", fromEnvironment = "${name}")`);
  return `using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "driver", worker = .driver),
    (name = "network", network = (allow = ["public", "private", "local"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "driver")],
);

const driver :Workerd.Worker = (
  modules = [${modules.join(", ")}],
  compatibilityDate = "2026-11-01",
  compatibilityFlags = ["nodejs_compat", "nodejs_compat_populate_process_env"],
  bindings = [${bindings.join(", ")}],
  globalOutbound = "network",
);
`;
}
