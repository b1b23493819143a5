/** What to do, from the command line and the environment. */
import { parseArgs } from "node:util";
import { credentialOf } from "./credential.mjs";
import { Failure } from "./failure.mjs";
import { ENDPOINTS } from "./request-line.mjs";

/** @typedef {import("./rows.mjs").Kind} Kind */

/**
 * `input` null = the batch is to be cancelled; "-" = standard input. `endpoint` null = as the input says.
 * @typedef {{
 *   input: { path: string, kind: Kind } | null, output: string, format: Kind | "raw", endpoint: string | null,
 *   defaults: import("./request-line.mjs").Defaults, server: import("./credential.mjs").Server,
 *   fresh: boolean, quiet: boolean,
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
  url: { type: "string" },
  "token-file": { type: "string" },
  fresh: { type: "boolean", default: false },
  cancel: { type: "boolean", default: false },
  quiet: { type: "boolean", short: "q", default: false },
  help: { type: "boolean", short: "h", default: false },
});

const KINDS = /** @type {const} */ (["jsonl", "text", "csv"]);

/**
 * @param {readonly string[]} args What follows `batch`.
 * @param {{ env: Record<string, string | undefined>, readFile: (path: string) => string }} deps
 * @returns {Setting | "help"}
 * @throws {Failure} that says what is wrong.
 */
export function settingOf(args, deps) {
  const { values, positionals } = parse(args);
  if (values.help) return "help";
  const { output, cancel, fresh, quiet } = values;
  if (output === undefined || output === "") throw wrong("Where do the answers go? Name the file with -o.");
  if (output === "-") throw wrong("The output must be a file: beside it the batch is remembered.");
  if (values.raw && values.format !== undefined) throw wrong("--raw and --format cannot both be.");
  if (positionals.length > 1) throw wrong("There is more than one input. A prompt goes into a file.");
  const [path] = positionals;
  if (cancel && (path !== undefined || fresh)) throw wrong("--cancel takes -o only, no input and no --fresh.");
  if (!cancel && path === undefined) throw wrong("What is to be asked? Name the input.");
  return {
    input: path === undefined ? null : { path, kind: inputKind(path, values.from) },
    output,
    format: values.raw ? "raw" : outputKind(output, values.format),
    endpoint: oneOf("endpoint", values.endpoint, ENDPOINTS),
    defaults: defaultsOf(values),
    server: credentialOf({ url: values.url, tokenFile: values["token-file"] }, deps),
    fresh,
    quiet,
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
  if (path === "-") throw wrong("What is on standard input? Say --from jsonl, --from text or --from csv.");
  throw wrong("The input's name does not tell its kind. Say --from jsonl, --from text or --from csv.");
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
 * @returns {import("./request-line.mjs").Defaults}
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
  return new Failure(`${sentence}\nfanout batch --help tells all of it.`);
}
