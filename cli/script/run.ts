/**
 * `fanout run FILE`: runs a workflow script in a run of its own. The script's functions are global, and are given to its default
 * function; its result is the last line of standard output, as JSON. With `--json`, that line is the only one.
 */
import { existsSync } from "node:fs";
import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { Failure } from "../failure.ts";
import { printable, shellWord } from "../text/printable.ts";
import { durationText, usdText } from "../text/amounts.ts";
import { Opened } from "../gateway/documents.ts";
import { GATEWAY_OPTIONS, GATEWAY_USAGE, gatewayOf, json, ownRunId, type Gateway } from "../gateway/requests.ts";
import { amountOf, parsed, wrong } from "../options.ts";
import { pageUrl, summaryLine } from "../text/summary.ts";
import { loadScript, type ScriptEvent } from "./functions.ts";
import { shownError } from "./thrown.ts";
import type { Surroundings } from "../command.ts";

const USAGE = `Usage: fanout run FILE [--budget USD] [--model M] [--run RUN] [--replay-from RUN] [--args JSON] [--json] ${GATEWAY_USAGE}

FILE is an ES module. It uses the functions agent, parallel, pipeline, phase, log, budget and workflow, or exports a default
function that receives them. Its result is printed as JSON on the last line. Logs, failed calls and one last line with calls,
cost, time and the run's page go to standard error; on a terminal also phases and each call.

--budget USD        opens a run that can spend so much at most: a child of the token's run, or with the operator's key a root run
--run RUN           uses this run instead, whose token FANOUT_TOKEN must be
--model M           model of calls that name none
--replay-from RUN   calls that this run has made cost nothing again
--args JSON         the script's args
--json              prints one object only: result, failures, run, url, cost_usd, duration_ms, agents, completed, failed;
                    what the script prints goes to standard error

Exit status: 0 done, 1 the script or the command failed, 2 done, but some calls failed, 3 stopped at the budget, 130 Ctrl-C
`;

/** Loaded once: a process runs one script. */
const script = await loadScript();

const FUNCTIONS = ["agent", "parallel", "pipeline", "phase", "log", "budget", "workflow", "failures"];

export async function run(args: string[], surroundings: Surroundings): Promise<number> {
  const { stdout, stderr, isLive } = surroundings;
  const startedAtMs = Date.now();
  const { values, positionals } = parsed("run", args, {
    budget: { type: "string" },
    run: { type: "string" },
    model: { type: "string" },
    "replay-from": { type: "string" },
    args: { type: "string" },
    json: { type: "boolean", default: false },
    ...GATEWAY_OPTIONS,
    help: { type: "boolean", short: "h", default: false },
  });
  if (values.help) return (stdout(USAGE), 0);
  const [file] = positionals;
  if (file === undefined || positionals.length > 1) throw wrong("run", "Expected one file.");
  if (!existsSync(file)) throw new Failure(`No such file: ${shellWord(file)}.`);
  const scriptArgs = argsOf(values.args);
  const gateway = gatewayOf(values, surroundings, { operator: false });
  const opened = await openRun(gateway, { ...values, file });
  // A script may use other stubs, which read these. It must not find the operator's key.
  delete process.env["ADMIN_KEY"];
  Object.assign(process.env, { FANOUT_URL: gateway.url, FANOUT_TOKEN: opened.token });
  const report = { agents: 0, completed: 0, replayed: 0 };
  const onEvent = (event: ScriptEvent) => {
    const text = isLive || !isProgress(event) ? eventText(event) : null;
    if (event.type === "agent_ended") report.agents += 1;
    if (event.type === "agent_ended" && event.ok) report.completed += 1;
    if (event.type === "agent_ended" && event.replayed) report.replayed += 1;
    if (text !== null) stderr(`${text}\n`);
  };
  script.configure({ url: gateway.url, token: opened.token, model: values.model ?? null, onEvent });
  // `stdout` of the surroundings still writes to standard output; a script must not write beside the document.
  if (values.json) Object.defineProperty(process.stdout, "write", { value: process.stderr.write.bind(process.stderr) });
  try {
    const ended = await execute(file, scriptArgs, surroundings.signal);
    await script.flushed();
    const facts = {
      ...report,
      durationMs: Date.now() - startedAtMs,
      runId: opened.id,
      url: pageUrl(gateway.url, opened.id),
    };
    stderr(lastLines(ended, facts));
    const whole = wholeOf(ended, facts);
    if (ended.status !== 1 || values.json) stdout(`${JSON.stringify(values.json ? whole : ended.result)}\n`);
    return ended.status;
  } finally {
    if (opened.isOwn) await json(gateway, `/runs/${opened.id}/close`, { method: "POST" }).catch(() => undefined);
  }
}

function argsOf(text: string | undefined) {
  try {
    return text === undefined ? null : JSON.parse(text);
  } catch {
    throw wrong("run", "--args must be JSON.");
  }
}

/** The run whose budget holds. `isOwn`: opened here, and closed at the end. */
async function openRun(
  gateway: Gateway,
  {
    file,
    budget,
    run: named,
    model,
    "replay-from": replayFrom,
  }: {
    file: string;
    budget?: string | undefined;
    run?: string | undefined;
    model?: string | undefined;
    "replay-from"?: string | undefined;
  },
) {
  const usd = amountOf("run", "budget", budget);
  const { value: token, from, isRunToken: isToken } = gateway.credential;
  if (named !== undefined || (usd === null && isToken)) {
    if (!isToken)
      throw wrong("run", "--run needs FANOUT_TOKEN, the token of that run. With the operator's key, use --budget.");
    const own = await ownRunId(gateway);
    if (named !== undefined && named !== own)
      throw wrong("run", `The token from ${from} belongs to ${own}, not to ${printable(named)}.`);
    return { id: own, token, isOwn: false };
  }
  if (usd === null) throw wrong("run", "Set a budget, such as --budget 2.00: a script can make any number of calls.");
  const fields = {
    name: basename(file).slice(0, 100),
    budget: { usd },
    // The next run may begin where this one ended.
    replay: "run",
    ...(model === undefined ? {} : { default_model: model }),
    ...(replayFrom === undefined ? {} : { replay_from: replayFrom }),
  };
  return { ...Opened.parse(await json(gateway, "/runs", { json: fields })), isOwn: true };
}

/** What a script ended with. It is not isolated: it is the user's own program. */
export type Ended = { status: number; result: unknown; message: string | null };

async function execute(file: string, args: unknown, signal: AbortSignal): Promise<Ended> {
  const functions = Object.fromEntries(Object.entries(script).filter(([name]) => FUNCTIONS.includes(name)));
  Object.assign(globalThis, functions, { args });
  const stopped = new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  // A script that is stopped is left behind: the process ends.
  stopped.catch(() => undefined);
  try {
    await script.connected();
    const main = async () => {
      const module_ = await import(pathToFileURL(resolve(file)).href);
      return typeof module_.default === "function" ? await module_.default({ ...functions, args }) : module_.default;
    };
    const result = (await Promise.race([main(), stopped])) ?? null;
    return { ...statusOf(), result };
  } catch (error) {
    if (signal.aborted) return { status: 130, result: null, message: "Stopped." };
    if (error instanceof script.BudgetError) return { status: 3, result: null, message: "Stopped at the budget." };
    return { status: 1, result: null, message: shownError(error, file) };
  }
}

/** The exit status of a script that has ended. It is that of a stop also if the script went on after the budget refused a call. */
function statusOf() {
  const { failures } = script;
  if (failures.some(({ code }) => code === "budget_exhausted" || code === "infeasible")) {
    return { status: 3, message: "Stopped at the budget." };
  }
  return { status: failures.length > 0 ? 2 : 0, message: null };
}

/** `agents`: calls that have ended; `replayed` are among the `completed` ones. */
export type Facts = {
  agents: number;
  completed: number;
  replayed: number;
  durationMs: number;
  runId: string;
  url: string;
};

/** What standard error says at the end. */
function lastLines({ message }: Ended, { agents, completed, replayed, durationMs, url }: Facts) {
  const [costUsd, failed] = [script.budget.spent(), agents - completed];
  const thrown = script.failures.filter(({ code }) => code === "script_error");
  const because = script.failures.find(({ code }) => code !== "script_error")?.message ?? null;
  const lines = [
    ...(thrown.length === 0
      ? []
      : [`✗  ${thrown.length} failed in the script (${printable(thrown[0]?.message ?? "")})`]),
    ...(message === null ? [] : [message]),
    summaryLine({ completed, failed, replayed, because, costUsd, durationMs, place: url }),
  ];
  return `${lines.join("\n")}\n`;
}

/** The document of `--json`. */
function wholeOf({ result }: Ended, { agents, completed, durationMs, runId, url }: Facts) {
  const figures = {
    cost_usd: script.budget.spent(),
    duration_ms: durationMs,
    agents,
    completed,
    failed: agents - completed,
  };
  return { result, failures: script.failures, run: runId, url, ...figures };
}

/**
 * Whether an event only says how far the script is, which is of use while someone watches. What a script logs and what fails stays.
 */
function isProgress(event: ScriptEvent) {
  return event.type === "phase" || (event.type === "agent_ended" && event.ok);
}

function eventText(event: ScriptEvent): string | null {
  if (event.type === "phase") return `── ${printable(event.phase)}`;
  if (event.type === "log") return `   ${printable(event.text)}`;
  if (event.type !== "agent_ended") return null;
  const mark = event.ok ? "✓" : "✗";
  const left = script.budget.remaining();
  const rest = left === null ? "" : ` · ${usdText(left)} left`;
  const what = event.ok ? usdText(event.costUsd) : (event.code ?? "failed");
  return `${mark}  ${printable(event.label).slice(0, 60)} · ${what} · ${durationText(event.durationMs)}${rest}`;
}
