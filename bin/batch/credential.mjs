/**
 * Which server, and what opens it. A key goes only where it belongs: FANOUT_TOKEN not to OPENAI_BASE_URL, OPENAI_API_KEY
 * not to FANOUT_URL; with --url the person has named the place.
 */
import { Failure } from "./failure.mjs";
import { printable } from "./printable.mjs";

const URL_DEFAULT = "http://127.0.0.1:8787";

/**
 * `apiUrl` ends with the version (`/v1`) and without a slash; `budgetUrl` tells what the run has spent, null = this is no
 * place for one.
 * @typedef {{ apiUrl: string, budgetUrl: string | null, token: string, tokenFrom: string }} Server
 */

/**
 * @param {{ url: string | undefined, tokenFile: string | undefined }} asked
 * @param {{ env: Record<string, string | undefined>, readFile: (path: string) => string }} deps
 * @returns {Server}
 */
export function credentialOf({ url, tokenFile }, { env, readFile }) {
  const name = (/** @type {string} */ key) => env[key]?.trim() || undefined;
  const isOpenAi =
    url === undefined && !name("FANOUT_URL") && !name("FANOUT_TOKEN") && name("OPENAI_BASE_URL") !== undefined;
  const place = url ?? (isOpenAi ? name("OPENAI_BASE_URL") : name("FANOUT_URL")) ?? URL_DEFAULT;
  const apiUrl = apiUrlOf(place, isOpenAi);
  const budgetUrl = apiUrl.endsWith("/v1") ? `${apiUrl.slice(0, -"/v1".length)}/budget` : null;
  const keys = isOpenAi ? ["OPENAI_API_KEY"] : ["FANOUT_TOKEN", ...(url === undefined ? [] : ["OPENAI_API_KEY"])];
  const found = keys.find((key) => name(key) !== undefined);
  const tokenFrom = tokenFile ?? found;
  if (tokenFrom === undefined) throw new Failure(missing(keys));
  const token = (tokenFile === undefined ? name(tokenFrom) : readToken(tokenFile, readFile)) ?? "";
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new Failure(`The token from ${printable(tokenFrom)} is empty or holds a character that no token has.`);
  }
  return { apiUrl, budgetUrl, token, tokenFrom: printable(tokenFrom) };
}

/** @param {string[]} keys */
function missing(keys) {
  if (keys[0] === "OPENAI_API_KEY") return "There is no token. Set OPENAI_API_KEY, which goes with OPENAI_BASE_URL.";
  return "There is no token. Set FANOUT_TOKEN to the run's token (POST /runs answers with one), or name --token-file.";
}

/**
 * @param {string} place
 * @param {boolean} isExact Whether it is the API's own URL; else `/v1` is added where it is missing.
 */
function apiUrlOf(place, isExact) {
  /** @type {URL} */
  let url;
  try {
    url = new URL(place);
  } catch {
    throw new Failure(`The server's URL is none: ${printable(place)}`);
  }
  if (!/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") {
    throw new Failure("The server's URL must begin with http:// or https:// and hold no password.");
  }
  const path = url.pathname.replace(/\/+$/, "");
  return `${url.origin}${path}${isExact || path.endsWith("/v1") ? "" : "/v1"}`;
}

/**
 * @param {string} path
 * @param {(path: string) => string} readFile
 */
function readToken(path, readFile) {
  try {
    return readFile(path).trim();
  } catch (error) {
    throw new Failure(`Cannot read the token file: ${printable(error instanceof Error ? error.message : "")}`);
  }
}
