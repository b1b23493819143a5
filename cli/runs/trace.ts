/** `fanout trace RUN`: the trace of a run as a file. */
import { createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { countText } from "../text/amounts.ts";
import { shellWord } from "../text/printable.ts";
import { Run } from "../gateway/documents.ts";
import { GATEWAY_OPTIONS, GATEWAY_USAGE, gatewayOf, json, request, wholeId } from "../gateway/requests.ts";
import { parsed, wrong } from "../options.ts";
import { costAndTime } from "../text/table.ts";
import type { Surroundings } from "../command.ts";

const USAGE = `Usage: fanout trace [RUN] [-o FILE] [--json] ${GATEWAY_USAGE}

Saves the trace of a run, for ui.perfetto.dev. RUN: default the run of FANOUT_TOKEN. FILE: default RUN.trace.json; - is
standard output. --json prints what was saved as JSON.
`;

export async function trace(args: string[], { env, read, stdout, stderr, signal }: Surroundings): Promise<number> {
  const startedAtMs = Date.now();
  const { values, positionals } = parsed("trace", args, {
    output: { type: "string", short: "o" },
    json: { type: "boolean", default: false },
    ...GATEWAY_OPTIONS,
    help: { type: "boolean", short: "h", default: false },
  });
  if (values.help) return (stdout(USAGE), 0);
  if (positionals.length > 1) throw wrong("trace", "Expected one run.");
  const gateway = gatewayOf(values, { env, read }, { operator: false });
  const [named] = positionals;
  if (named === undefined && !gateway.credential.isRunToken) throw wrong("trace", "The run is missing.");
  const whole = named === undefined ? undefined : await wholeId(gateway, named, signal);
  const path = whole === undefined ? "/run" : `/runs/${encodeURIComponent(whole)}`;
  const { id, budget } = Run.parse(await json(gateway, path, { signal }));
  const response = await request(gateway, `/runs/${encodeURIComponent(id)}/trace.json`, { signal });
  if (values.output === "-") {
    for await (const chunk of response.body ?? []) stdout(Buffer.from(chunk).toString("utf8"));
    return 0;
  }
  const file = values.output ?? `${id.replace(/[^\w-]/g, "_")}.trace.json`;
  let bytes = 0;
  const counted = async function* () {
    for await (const chunk of response.body ?? []) {
      bytes += chunk.length;
      yield chunk;
    }
  };
  await pipeline(Readable.from(counted()), createWriteStream(file));
  const { spent } = budget.usd;
  if (values.json) stdout(`${JSON.stringify({ run: id, file, bytes, cost_usd: spent })}\n`);
  else
    stderr(
      `${shellWord(file)}: ${countText(bytes)} bytes, for https://ui.perfetto.dev · ${costAndTime(spent, startedAtMs)}\n`,
    );
  return 0;
}
