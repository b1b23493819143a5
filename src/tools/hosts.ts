/** The operator's list of hosts that tools may have (`TOOL_HOSTS`). */

/** A host as the URL parser writes it, without a last dot; `port` null = any. */
export type ToolHost = { host: string; port: number | null };

/** What the URL parser leaves of a name or an IPv4 address; it lets through signs that look like patterns or lists. */
const PLAIN = /^(?:\[.*\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)$/;

const ENTRY = /^(\[[0-9a-fA-F:.]+\]|[^\s/:?#@[\]\\]+)(?::(\d{1,5}))?$/;

/** The hosts that a text lists, separated by commas; null if one is invalid, or a text that is not empty lists none. */
export function parseToolHosts(text: string): ToolHost[] | null {
  const hosts: ToolHost[] = [];
  for (const entry of text.split(",").map((part) => part.trim())) {
    if (entry === "") continue;
    const [, name = "", digits] = ENTRY.exec(entry) ?? [];
    const url = URL.parse(`http://${name}/`);
    const port = digits === undefined ? null : Number(digits);
    if (name === "" || url === null || port === 0 || (port ?? 0) > 65_535) return null;
    if (!PLAIN.test(hostOf(url))) return null;
    hosts.push({ host: hostOf(url), port });
  }
  // Taken for not set, a list of nothing would allow any public host.
  return hosts.length === 0 && text !== "" ? null : hosts;
}

/** A URL's host as it is compared: a trailing dot only marks the name as complete. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/\.$/, "");
}

/** Whether the list names the host and port of a URL. */
export function lists(hosts: readonly ToolHost[], url: URL): boolean {
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  return hosts.some((listed) => listed.host === hostOf(url) && (listed.port === null || listed.port === port));
}
