/** `fanout top`: active runs and the keys of upstreams, again and again. */
import { setTimeout as delay } from "node:timers/promises";
import { usdText } from "../text/amounts.ts";
import { AnyPage, RunPage, UpstreamPage } from "../gateway/documents.ts";
import { GATEWAY_OPTIONS, GATEWAY_USAGE, gatewayOf, json } from "../gateway/requests.ts";
import { amountOf, parsed, wrong } from "../options.ts";
import { HEADER, rowOf, unreadText } from "./runs.ts";
import { costAndTime, tableText } from "../text/table.ts";
import type { Surroundings } from "../command.ts";

const USAGE = `Usage: fanout top [--every SECONDS] [--once] [--json] ${GATEWAY_USAGE}

Shows active runs and the limits of each upstream's keys, every 2 seconds. Needs the operator's key. It wakes no run: figures
of runs are read every 10 seconds, as the runs have last reported them.
`;

/** Runs report no sooner, and each look at the list asks every part of it. */
const RUNS_EVERY_MS = 10_000;

const CLEAR_SCREEN = "\u001b[H\u001b[J";

export async function top(args: string[], { env, read, stdout, isScreen, signal }: Surroundings): Promise<number> {
  const startedAtMs = Date.now();
  const { values, positionals } = parsed("top", args, {
    every: { type: "string", default: "2" },
    once: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    ...GATEWAY_OPTIONS,
    help: { type: "boolean", short: "h", default: false },
  });
  if (values.help) return (stdout(USAGE), 0);
  if (positionals.length > 0) throw wrong("top", "Expected options only.");
  const everyMs = Math.max(0.2, amountOf("top", "every", values.every) ?? 2) * 1_000;
  const gateway = gatewayOf(values, { env, read }, { operator: true });
  let runs: unknown = null;
  let runsAtMs = -Infinity;
  for (;;) {
    if (Date.now() >= runsAtMs + RUNS_EVERY_MS) {
      runsAtMs = Date.now();
      runs = await json(gateway, "/runs?status=active&limit=20&view=summary", { signal });
    }
    const upstreams = await json(gateway, "/upstreams", { signal });
    if (values.json)
      stdout(`${JSON.stringify({ runs: AnyPage.parse(runs).data, upstreams: AnyPage.parse(upstreams).data })}\n`);
    else {
      const screen = screenOf(RunPage.parse(runs), UpstreamPage.parse(upstreams), startedAtMs);
      stdout(`${isScreen && !values.once ? CLEAR_SCREEN : ""}${screen}`);
    }
    if (values.once) return 0;
    await delay(everyMs, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return 130;
  }
}

function screenOf(runs: RunPage, upstreams: UpstreamPage, startedAtMs: number): string {
  const keys = upstreams.data.map(({ name, key, class: kind, in_flight, waiting, runs: users, reason }) => [
    [name, key].filter((each) => each !== "").join(" "),
    kind,
    in_flight,
    waiting,
    users,
    reason || "–",
  ]);
  const spent = runs.data.reduce((sum, run) => sum + run.budget.usd.spent, 0);
  const reserved = runs.data.reduce((sum, run) => sum + run.budget.usd.reserved, 0);
  const tables = [
    `${tableText(HEADER, runs.data.map(rowOf))}${unreadText(runs)}`,
    tableText(["upstream", "class", "in flight", "waiting", "runs", "reason"], keys),
  ];
  return `${tables.join("\n")}\n${runs.data.length} active runs · ${usdText(reserved)} reserved · ${costAndTime(spent, startedAtMs)}\n`;
}
