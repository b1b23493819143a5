/** The settings of the command, from its arguments and the environment. */
import { parseArgs } from "node:util";
import { serverOf } from "./server/server.mjs";
import { GATEWAY_OPTIONS } from "../gateway/requests.mjs";
import { Failure } from "../failure.mjs";
import { ENDPOINTS } from "./input/request-line.mjs";

/** @typedef {import("./input/rows.mjs").Kind} Kind */

/**
 * `input` null: cancel the batch; "-": standard input. `endpoint` null: as in the input. `serviceTier` null: every line is sent live.
 * @typedef {{
 *   input: { path: string, kind: Kind } | null, output: string, format: Kind | "raw", endpoint: string | null,
 *   serviceTier: string | null,
 *   defaults: import("./input/request-line.mjs").Defaults, server: import("./server/server.mjs").Server,
 *   fresh: boolean, quiet: boolean, json: boolean,
 * }} Setting
 */

const OPTIONS = /** @type {const} */ ({
  output: { type: "string", short: "o" },
  from: { type: "string" },
  format: { type: "string" },
  raw: { type: "boolean", default: false },
  model: { type: "string" },
  system: { type: "string" },
  "max-tokens": { type: "string" },
  temperature: { type: "string" },
  endpoint: { type: "string" },
  "service-tier": { type: "string" },
  ...GATEWAY_OPTIONS,
  fresh: { type: "boolean", default: false },
  cancel: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
  quiet: { type: "boolean", short: "q", default: false },
  help: { type: "boolean", short: "h", default: false },
});

/** Tiers of whole batches. */
const SERVICE_TIERS = /** @type {const} */ (["batch"]);

const KINDS = /** @type {const} */ (["jsonl", "text", "csv"]);

/**
 * @param {readonly string[]} args The arguments after `batch`.
 * @param {import("../credential.mjs").Places} places
 * @returns {Setting | "help"}
 * @throws {Failure} with what is wrong.
 */
export function settingOf(args, places) {
  const { values, positionals } = parse(args);
  if (values.help) return "help";
  const { output, cancel, fresh, quiet, json } = values;
  if (output === undefined || output === "") throw wrong("The output file is missing. Name it with -o.");
  if (output === "-") throw wrong("The output must be a file, because the batch's id is stored next to it.");
  if (values.raw && values.format !== undefined) throw wrong("Use either --raw or --format, not both.");
  if (positionals.length > 1) throw wrong("Expected one input file. Prompts go into a file, not into the command.");
  const [path] = positionals;
  if (cancel && (path !== undefined || fresh)) throw wrong("--cancel accepts only -o, no input and no --fresh.");
  if (!cancel && path === undefined) throw wrong("The input file is missing.");
  return {
    input: path === undefined ? null : { path, kind: inputKind(path, values.from) },
    output,
    format: values.raw ? "raw" : outputKind(output, values.format),
    endpoint: oneOf("endpoint", values.endpoint, ENDPOINTS),
    serviceTier: oneOf("service-tier", values["service-tier"], SERVICE_TIERS),
    defaults: defaultsOf(values),
    server: serverOf({ url: values.url, tokenFile: values["token-file"], envFiles: values["env-file"] }, places),
    fresh,
    quiet,
    json,
  };
}

/** @param {readonly string[]} args */
function parse(args) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    throw wrong(error instanceof Error ? error.message : String(error));
  }
}

/**
 * @param {string} path
 * @param {string | undefined} from
 * @returns {Kind}
 */
function inputKind(path, from) {
  const kind = oneOf("from", from, KINDS) ?? kindByName(path);
  if (kind !== null) return kind;
  if (path === "-")
    throw wrong("The format of standard input is not known. Add --from jsonl, --from text or --from csv.");
  throw wrong("The format of the input is not known from its name. Add --from jsonl, --from text or --from csv.");
}

/**
 * @param {string} path
 * @param {string | undefined} format
 * @returns {Kind}
 */
function outputKind(path, format) {
  return oneOf("format", format, KINDS) ?? kindByName(path) ?? "jsonl";
}

/**
 * @param {string} path
 * @returns {Kind | null}
 */
function kindByName(path) {
  if (/\.(jsonl|ndjson)$/i.test(path)) return "jsonl";
  if (/\.csv$/i.test(path)) return "csv";
  return /\.txt$/i.test(path) ? "text" : null;
}

/**
 * @param {ReturnType<typeof parse>["values"]} values
 * @returns {import("./input/request-line.mjs").Defaults}
 */
function defaultsOf(values) {
  const cap = values["max-tokens"];
  const heat = values.temperature;
  if (cap !== undefined && !/^[1-9][0-9]{0,8}$/.test(cap))
    throw wrong("--max-tokens must be a whole number above zero.");
  if (heat !== undefined && !/^[0-9]{1,3}(\.[0-9]+)?$/.test(heat)) throw wrong("--temperature must be a number.");
  return {
    ...(values.model === undefined ? {} : { model: values.model }),
    ...(values.system === undefined ? {} : { system: values.system }),
    ...(cap === undefined ? {} : { max_tokens: Number(cap) }),
    ...(heat === undefined ? {} : { temperature: Number(heat) }),
  };
}

/**
 * @template {string} T
 * @param {string} name
 * @param {string | undefined} value
 * @param {readonly T[]} known
 * @returns {T | null}
 */
function oneOf(name, value, known) {
  if (value === undefined) return null;
  const found = known.find((one) => one === value);
  if (found === undefined) throw wrong(`--${name} must be one of: ${known.join(", ")}.`);
  return found;
}

/** @param {string} sentence */
function wrong(sentence) {
  return new Failure(`${sentence}\nFor help, run: fanout batch --help`);
}
