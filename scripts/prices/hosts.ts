/** The hosts for which a provider's prices are valid, from the URL pattern of the price data. */

/** Hosts of providers whose pattern is not a finite list: those with the OpenAI protocol that bill in USD. */
const HOSTS: Readonly<Record<string, readonly string[]>> = {
  google: ["generativelanguage.googleapis.com"],
  moonshotai: ["api.moonshot.ai"],
  cloudflare: ["api.cloudflare.com"],
};

const GROUP = /\((?:\?:)?([a-z.|\\]+)\)(\??)/;
const HOST = /^(?:[a-z0-9-]+\\\.)+[a-z]+$/;

/** The hosts that a URL pattern matches; empty if it is a path or matches an infinite number of hosts. */
export function hostsOf(provider: string, apiPattern: string): string[] {
  const stated = HOSTS[provider];
  if (stated !== undefined) return [...stated];
  const host = /^https:\/\/(.+)$/.exec(apiPattern.replace(/\((?:\?:)?\/\|\$\)$/, ""))?.[1];
  if (host === undefined) return [];
  const all = expanded(host);
  return all.every((each) => HOST.test(each)) ? all.map((each) => each.replaceAll("\\", "")) : [];
}

/** `api\.x\.(?:com|io)` as its two alternatives; `(api\.)?x\.io` with and without. */
function expanded(pattern: string): string[] {
  const [group, choices = "", optional] = GROUP.exec(pattern) ?? [];
  if (group === undefined) return [pattern];
  const alternatives = [...choices.split("|"), ...(optional === "?" ? [""] : [])];
  return alternatives.flatMap((choice) => expanded(pattern.replace(group, () => choice)));
}
