/** `fanout watch RUN`: the events of a run on the terminal, or as JSON Lines. */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Failure } from "../failure.mjs";
import { BEGINNING, GATEWAY_OPTIONS, GATEWAY_USAGE, gatewayOf, json, request, wholeId } from "../gateway/requests.mjs";
import { parsed, wrong } from "../options.mjs";
import { textAt } from "../text/table.mjs";

const USAGE = `Usage: fanout watch [RUN] [--json] [--once] [--plain] ${GATEWAY_USAGE}

Shows a run until it ends. RUN: default the run of FANOUT_TOKEN. --json prints each event as one line of JSON; --once prints
the present state and exits; --plain redraws nothing.
`;

/** The display as one file, which the package has; and its source, which a clone has. */
const BUILT = fileURLToPath(new URL("../../dist/watch.mjs", import.meta.url));
const SOURCE = fileURLToPath(new URL("../../scripts/watch.ts", import.meta.url));
const CLONE_NODE = fileURLToPath(new URL("../../node_modules/.bin/node", import.meta.url));

/** @type {import("../commands.mjs").Command} */
export async function watch(args, { env, read, stdout, signal }) {
  const { values, positionals } = parsed("watch", args, {
    json: { type: "boolean", default: false },
    once: { type: "boolean", default: false },
    plain: { type: "boolean", default: false },
    ...GATEWAY_OPTIONS,
    help: { type: "boolean", short: "h", default: false },
  });
  if (values.help) return (stdout(USAGE), 0);
  if (positionals.length > 1) throw wrong("watch", "Expected one run.");
  const [named] = positionals;
  const isWhole = named === undefined || !BEGINNING.test(named);
  if (!values.json && isWhole) return await display(args);
  const gateway = gatewayOf(values, { env, read }, { operator: false });
  if (!values.json) {
    const whole = await wholeId(gateway, named ?? "", signal);
    return await display(args.map((arg) => (arg === named ? whole : arg)));
  }
  if (named === undefined && !gateway.isRunToken) throw wrong("watch", "The run is missing.");
  const id =
    named === undefined ? textAt(await json(gateway, "/run", { signal }), "id") : await wholeId(gateway, named, signal);
  const path = `/runs/${encodeURIComponent(id)}/${values.once ? "log" : "events"}`;
  const headers = { accept: values.once ? "application/x-ndjson" : "text/event-stream" };
  const response = await request(gateway, path, { headers, signal });
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of response.body ?? []) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (values.once ? line !== "" : line.startsWith("data: ")) stdout(`${values.once ? line : line.slice(6)}\n`);
    }
  }
  return 0;
}

/** @param {string[]} args @returns {Promise<number>} */
async function display(args) {
  const program = existsSync(BUILT) ? BUILT : SOURCE;
  if (!existsSync(program)) throw new Failure("This copy of fanout lacks the display. Use --json.");
  const node = program === SOURCE && existsSync(CLONE_NODE) ? CLONE_NODE : process.execPath;
  const child = spawn(node, [program, ...args], { stdio: "inherit" });
  return await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => resolve(code ?? 130));
  });
}
