/**
 * The server and its credential, which the rule of all commands finds. FANOUT_TOKEN is never sent to OPENAI_BASE_URL, and OPENAI_API_KEY never to FANOUT_URL. With --url
 * the user has named the server.
 */
import { findCredential, type Name, type Places } from "../../credential.ts";
import { Failure } from "../../failure.ts";
import { printable } from "../../text/printable.ts";

const URL_DEFAULT = "http://127.0.0.1:8787";

/**
 * `apiUrl` ends with the version (`/v1`), without a slash. `gatewayUrl`: the address of fanout's own routes, without a slash; null if
 * the server cannot have them.
 */
export type Server = { apiUrl: string; gatewayUrl: string | null; token: string; tokenFrom: string };

export function serverOf(
  {
    url,
    tokenFile,
    envFiles,
  }: { url: string | undefined; tokenFile: string | undefined; envFiles: string[] | undefined },
  places: Places,
): Server {
  const name = (key: string) => places.env[key]?.trim() || undefined;
  const isOpenAi =
    url === undefined && !name("FANOUT_URL") && !name("FANOUT_TOKEN") && name("OPENAI_BASE_URL") !== undefined;
  const place = url ?? (isOpenAi ? name("OPENAI_BASE_URL") : name("FANOUT_URL")) ?? URL_DEFAULT;
  const apiUrl = apiUrlOf(place, isOpenAi);
  const gatewayUrl = apiUrl.endsWith("/v1") ? apiUrl.slice(0, -"/v1".length) : null;
  const names: Name[] = isOpenAi ? ["OPENAI_API_KEY"] : ["FANOUT_TOKEN"];
  if (!isOpenAi && url !== undefined) names.push("OPENAI_API_KEY");
  const found = findCredential({ names, tokenFile, envFiles }, places);
  if (typeof found === "string") throw new Failure(found);
  return { apiUrl, gatewayUrl, token: found.value, tokenFrom: found.from };
}

/** @param isExact Whether it is already the API's URL; otherwise `/v1` is added if it is missing. */
function apiUrlOf(place: string, isExact: boolean) {
  let url: URL;
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
