/** `fanout runs`: the operator's list of runs. */
import { durationText, usdText } from "../batch/progress.mjs";
import { GATEWAY_OPTIONS, GATEWAY_USAGE, gatewayOf, ID_CHARS_SHOWN, json } from "./gateway.mjs";
import { amountOf, parsed, wrong } from "./options.mjs";
import { costAndTime, listAt, numberAt, sumAt, tableText, textAt } from "./table.mjs";

const USAGE = `Usage: fanout runs [--status S] [--name TEXT] [--min-usd X] [--limit N] [--json] ${GATEWAY_USAGE}

Lists root runs, newest first. S: active, paused, closed, cancelled, expired, escalated. Needs the operator's key. The shown
beginning of an id names the run in fanout watch and fanout trace; --json has all of it.
`;

/** @type {import("../commands.mjs").Command} */
export async function runs(args, { env, read, stdout, stderr, signal }) {
  const startedAtMs = Date.now();
  const { values, positionals } = parsed("runs", args, {
    status: { type: "string" },
    name: { type: "string" },
    "min-usd": { type: "string" },
    limit: { type: "string", default: "20" },
    json: { type: "boolean", default: false },
    ...GATEWAY_OPTIONS,
    help: { type: "boolean", short: "h", default: false },
  });
  if (values.help) return (stdout(USAGE), 0);
  if (positionals.length > 0) throw wrong("runs", "Expected options only.");
  const gateway = gatewayOf(values, { env, read }, { operator: true });
  const query = new URLSearchParams({ limit: values.limit });
  if (values.status !== undefined) query.set("status", values.status);
  if (values.name !== undefined) query.set("name", values.name);
  const least = amountOf("runs", "min-usd", values["min-usd"]);
  if (least !== null) query.set("spent_usd_min", String(least));
  const page = await json(gateway, `/runs?${query}`, { signal });
  const found = listAt(page, "data");
  if (values.json) return (stdout(`${JSON.stringify(page)}\n`), 0);
  stdout(tableText(HEADER, found.map(rowOf)));
  stdout(unreadText(page));
  const spent = found.reduce((/** @type {number} */ sum, run) => sum + numberAt(run, "budget", "usd", "spent"), 0);
  stderr(`${found.length} ${found.length === 1 ? "run" : "runs"} · ${costAndTime(spent, startedAtMs)}\n`);
  return 0;
}

export const HEADER = ["run", "name", "status", "spent", "limit", "calls", "pending", "failed", "age"];

/**
 * The runs that the list could not read, a line each; "" = it has read all.
 * @param {unknown} page
 */
export function unreadText(page) {
  const lines = listAt(page, "unread").map(
    (run) => `${textAt(run, "id")} ${textAt(run, "code")}: ${textAt(run, "message")}\n`,
  );
  const missing = numberAt(page, "missing_parts");
  return `${lines.join("")}${missing > 0 ? `${missing} parts of the list did not answer: runs are missing.\n` : ""}`;
}

/** @param {unknown} run */
export function rowOf(run) {
  const limit = numberAt(run, "budget", "usd", "limit");
  const calls = numberAt(run, "stats", "total_queries");
  return [
    textAt(run, "id").slice(0, ID_CHARS_SHOWN),
    textAt(run, "name").slice(0, 30) || "–",
    textAt(run, "status"),
    usdText(numberAt(run, "budget", "usd", "spent")),
    limit === 0 ? "–" : usdText(limit),
    calls,
    numberAt(run, "stats", "pending_queries"),
    sumAt(run, "metrics", "failures"),
    durationText(Date.now() - Date.parse(textAt(run, "created_at"))),
  ];
}
