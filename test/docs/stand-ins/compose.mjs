/**
 * Stands for `docker compose run SERVICE`, without an engine: checks that the service can reach nothing but the forwarder,
 * and runs its command as a plain process with the variables of the file. The gateway itself stands for the forwarder.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

const [name] = process.argv.slice(2);
const { services, networks } = parseYaml(readFileSync("compose.yaml", "utf8"));
const service = services[name];

check(service.networks.length === 1, `${name} is on one network`);
check(networks[service.networks[0]].internal === "true", "which has no way out");
check(service.ports === undefined && service.network_mode === undefined, "and no other");
const forwarders = Object.values(services).filter((other) => other !== service);
check(forwarders.length === 1 && forwarders[0].networks.includes(service.networks[0]), "one forwarder is on it too");
check(forwarders[0].command.includes("--to ${FANOUT_URL} "), "and forwards to the gateway");
check(service.privileged === undefined && service.cap_drop[0] === "ALL", "the sandbox has no rights");

const env = { PATH: process.env.PATH, PYTHONDONTWRITEBYTECODE: "1" };
for (const [key, value] of Object.entries(service.environment)) {
  env[key] = value.replace(/\$\{(\w+)\}/g, (_, variable) => process.env[variable] ?? "");
}
check(env.FANOUT_URL === "http://gateway:8787", "the code knows the forwarder's address");
env.FANOUT_URL = process.env.FANOUT_URL;
const [from, to] = service.volumes[0].split(":");
const [program, ...args] = service.command.split(" ").map((word) => word.replace(`${to}/`, ""));
const { status } = spawnSync(program, args, { cwd: from, env, stdio: "inherit" });
process.exitCode = status ?? 1;

function check(holds, rule) {
  if (!holds) throw new Error(`compose.yaml breaks a rule: ${rule}`);
}

/** The part of YAML that a compose file needs: maps by indentation, lists in brackets, texts. */
function parseYaml(text) {
  const root = {};
  const levels = [{ indent: -1, map: root }];
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    const [, space, key, value] = /^( *)([\w-]+):(?: (.*))?$/.exec(line) ?? [];
    if (key === undefined) throw new Error(`compose.yaml: not understood: ${line}`);
    while (levels.at(-1).indent >= space.length) levels.pop();
    const { map } = levels.at(-1);
    if (value === undefined) levels.push({ indent: space.length, map: (map[key] = {}) });
    else map[key] = value.startsWith("[") ? listOf(value) : value;
  }
  return root;
}

function listOf(text) {
  return text
    .slice(1, -1)
    .split(",")
    .map((element) => element.trim().replace(/^"(.*)"$/, "$1"));
}
