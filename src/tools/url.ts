/**
 * Which addresses a tool may have. Everything is decided on the URL as the parser writes it, for it turns every spelling
 * of a host (octal, hexadecimal or one number; full-width or escaped letters; IPv4 within IPv6) into one.
 *
 * A name that resolves to a private address passes: a Worker cannot look names up before it fetches.
 */
import { isPublicAddress } from "./address.ts";
import { hostOf, lists, type ToolHost } from "./hosts.ts";

export type CheckedUrl = { ok: true; url: string } | { ok: false; problem: string };

/** Names with these endings belong to one machine or network, or are reserved; clouds keep their metadata under `internal`. */
const INNER_NAMES =
  /(?:^|\.)(?:localhost|localdomain|local|internal|intranet|private|corp|home|lan|arpa|invalid|onion|metadata\.goog)$/;

/** A name of at least two labels, as the parser leaves it. */
const PUBLIC_NAME = /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)+$/;

/**
 * Whether a tool may have this address.
 * @param hosts The operator's list: where it names any, it alone decides on the host, and what it names may be private.
 */
export function checkToolUrl(text: string, hosts: readonly ToolHost[]): CheckedUrl {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    return { ok: false, problem: "expected an http:// or https:// address" };
  }
  if (url.username !== "" || url.password !== "") {
    return { ok: false, problem: "contains a user name or password; expected an address without either" };
  }
  // A fragment is never sent.
  url.hash = "";
  const problem = hosts.length > 0 ? (lists(hosts, url) ? null : UNLISTED) : publicFault(hostOf(url));
  return problem === null ? { ok: true, url: url.href } : { ok: false, problem };
}

const UNLISTED = "has a host that this gateway's TOOL_HOSTS does not list";

/** What keeps a host from being one of the public internet's, or null. */
function publicFault(host: string): string | null {
  const isPublic = isPublicAddress(host);
  if (isPublic === true) return null;
  if (isPublic === false) {
    return "has a private, local or reserved address; expected a public host, or one that TOOL_HOSTS lists";
  }
  if (PUBLIC_NAME.test(host) && !INNER_NAMES.test(host)) return null;
  return "has a host name outside the public internet; expected a public host, or one that TOOL_HOSTS lists";
}
