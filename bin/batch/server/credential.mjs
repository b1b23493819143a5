/**
 * The server and its credential. FANOUT_TOKEN is never sent to OPENAI_BASE_URL, and OPENAI_API_KEY never to FANOUT_URL. With --url
 * the user has named the server.
 */
import { Failure } from "../failure.mjs";
import { printable } from "../printable.mjs";

const URL_DEFAULT = "http://127.0.0.1:8787";

/**
 * `apiUrl` ends with the version (`/v1`), without a slash. `gatewayUrl`: the address of fanout's own routes, without a slash; null if
 * the server cannot have them.
 * @typedef {{ apiUrl: string, gatewayUrl: string | null, token: string, tokenFrom: string }} Server
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
  const gatewayUrl = apiUrl.endsWith("/v1") ? apiUrl.slice(0, -"/v1".length) : null;
  const keys = isOpenAi ? ["OPENAI_API_KEY"] : ["FANOUT_TOKEN", ...(url === undefined ? [] : ["OPENAI_API_KEY"])];
  const found = keys.find((key) => name(key) !== undefined);
  const tokenFrom = tokenFile ?? found;
  if (tokenFrom === undefined) throw new Failure(missing(keys));
  const token = (tokenFile === undefined ? name(tokenFrom) : readToken(tokenFile, readFile)) ?? "";
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new Failure(`The token from ${printable(tokenFrom)} is empty or contains a character that no token has.`);
  }
  return { apiUrl, gatewayUrl, token, tokenFrom: printable(tokenFrom) };
}

/** @param {string[]} keys */
function missing(keys) {
  if (keys[0] === "OPENAI_API_KEY")
    return "The token is missing. Set OPENAI_API_KEY, which is used with OPENAI_BASE_URL.";
  return "The token is missing. Set FANOUT_TOKEN to the run's token (POST /runs returns one), or use --token-file.";
}

/**
 * @param {string} place
 * @param {boolean} isExact Whether it is already the API's URL; otherwise `/v1` is added if it is missing.
 */
function apiUrlOf(place, isExact) {
  /** @type {URL} */
  let url;
  try {
    url = new URL(place);
  } catch {
    throw new Failure(`The server's URL is invalid: ${printable(place)}`);
  }
  if (!/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") {
    throw new Failure("The server's URL must begin with http:// or https:// and must not contain a password.");
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
