/**
 * `npm run serve`: the gateway on your own server. It reads its configuration from the environment, prints one line when it is
 * ready, and on SIGTERM finishes the requests in progress before it exits. See docs/self-host.md.
 */
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { unreachableApart, usabilityApart } from "./local/apart.ts";
import { startLocalGateway, type LocalGateway } from "./local/gateway.ts";
import { serveSetting, type ServeSetting } from "./local/serve-setting.ts";
import { StopSignal } from "./local/stop-signal.ts";
import { tryPort } from "./port.ts";
import { withoutTokens } from "./redact-tokens.ts";
import { ROOT } from "./root.ts";

const HELP = `npm run serve [-- --env-file FILE]
  --env-file FILE   variables that the environment does not set; may be given more than once, the last one wins
Environment: ADMIN_KEY (required), PORT (8787), HOST (127.0.0.1; 0.0.0.0 for all interfaces), FANOUT_DATA (.data, the
folder of the state), and the variables of docs/configuration.md, with the secrets that they refer to as secret:NAME.`;

process.exitCode = await main();

async function main(): Promise<number> {
  const stopSignal = new StopSignal();
  const flags = flagsOf(process.argv.slice(2));
  if (typeof flags === "string") return fail(flags);
  if (flags.help === true) {
    console.log(HELP);
    return 0;
  }
  const setting = serveSetting(process.env, flags["env-file"] ?? []);
  if (typeof setting === "string") return fail(setting);
  const taken = await tryPort(setting.port, setting.host);
  if ("refused" in taken) return fail(`Cannot listen on ${setting.host}:${setting.port}: ${taken.refused}.`);
  const { vars } = setting;
  const unreachable = unreachableApart({ vars });
  const gateway = await started(setting);
  if (typeof gateway === "string") return fail(gateway);
  const { problem, warnings } = await usabilityApart({ url: gateway.url, adminKey: setting.adminKey });
  if (problem !== null) {
    await gateway.stop();
    return fail(`The gateway is not usable: ${problem}`);
  }
  for (const warning of [...warnings, ...(await unreachable)]) console.error(`Warning: ${warning}.`);
  console.log(`fanout is ready at http://${setting.host}:${setting.port}. State: ${dataDirOf(setting)}`);
  return await stopSignal.stopped(gateway);
}

/** The gateway, or why it did not start. */
async function started(setting: ServeSetting): Promise<LocalGateway | string> {
  const log = (line: string): void => console.error(withoutTokens(line));
  const { host, port, vars } = setting;
  try {
    return await startLocalGateway({ vars }, { host, port, dataDir: dataDirOf(setting), log });
  } catch (error) {
    return `The gateway did not start:\n${error instanceof Error ? error.message : String(error)}`;
  }
}

function dataDirOf({ dataDir }: ServeSetting): string {
  return resolve(ROOT, dataDir);
}

function flagsOf(args: string[]) {
  const options = {
    help: { type: "boolean", short: "h" },
    "env-file": { type: "string", multiple: true },
  } as const;
  try {
    return parseArgs({ args, options }).values;
  } catch (error) {
    return `${error instanceof Error ? error.message : String(error)}\n${HELP}`;
  }
}

function fail(message: string): number {
  console.error(message);
  return 1;
}
