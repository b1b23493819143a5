/** `fanout watch RUN`: the events of a run on the terminal, or as JSON Lines. */
import {
  BEGINNING,
  GATEWAY_OPTIONS,
  GATEWAY_USAGE,
  gatewayOf,
  ownRunId,
  request,
  wholeId,
} from "../gateway/requests.ts";
import { parsed, wrong } from "../options.ts";
import { linesOf, SENT_LINE_BYTES_MAX, textOfLine } from "../text/lines.ts";
import { showRun } from "../watch/show.ts";
import type { Surroundings } from "../command.ts";

const USAGE = `Usage: fanout watch [RUN] [--json] [--once] [--plain] [--tree] ${GATEWAY_USAGE}

Shows a run until it ends. RUN: default the run of FANOUT_TOKEN. --json prints each event as one line of JSON; --once prints
the present state and exits; --plain redraws nothing; --tree shows the runs below it as well, without --json.
`;

/** How a line of an event stream begins that has an event: the gateway writes each on one line. */
const DATA = "data: ";

export async function watch(args: string[], surroundings: Surroundings): Promise<number> {
  const { stdout, signal } = surroundings;
  const { values, positionals } = parsed("watch", args, {
    json: { type: "boolean", default: false },
    once: { type: "boolean", default: false },
    plain: { type: "boolean", default: false },
    tree: { type: "boolean", default: false },
    ...GATEWAY_OPTIONS,
    help: { type: "boolean", short: "h", default: false },
  });
  if (values.help) return (stdout(USAGE), 0);
  if (positionals.length > 1) throw wrong("watch", "Expected one run.");
  const [named] = positionals;
  const isWhole = named === undefined || !BEGINNING.test(named);
  if (!values.json && isWhole) return await showRun(args, surroundings);
  const gateway = gatewayOf(values, surroundings, { operator: false });
  if (!values.json) {
    const whole = await wholeId(gateway, named ?? "", signal);
    return await showRun(
      args.map((arg) => (arg === named ? whole : arg)),
      surroundings,
    );
  }
  if (named === undefined && !gateway.credential.isRunToken) throw wrong("watch", "The run is missing.");
  const id = named === undefined ? await ownRunId(gateway, signal) : await wholeId(gateway, named, signal);
  const path = `/runs/${encodeURIComponent(id)}/${values.once ? "log" : "events"}`;
  const accept = values.once ? "application/x-ndjson" : "text/event-stream";
  const response = await request(gateway, path, { accept, signal });
  for await (const line of linesOf(response.body ?? [], SENT_LINE_BYTES_MAX)) {
    if (!line.isEnded) break;
    const text = textOfLine(line);
    if (values.once || text.startsWith(DATA)) stdout(`${values.once ? text : text.slice(DATA.length)}\n`);
  }
  return 0;
}
