/** Which IP addresses are the public internet's, by the table of special ranges of ipaddr.js (IANA's registry). */
import ipaddr from "ipaddr.js";

/** IPv6 addresses that are given out to networks; new special ranges lie outside of them. */
const GLOBAL_V6: [ipaddr.IPv6, number] = [ipaddr.IPv6.parse("2000::"), 3];

/** Azure's metadata service: it answers for the machine that calls it, although the address is public. */
const AZURE_METADATA = "168.63.129.16";

/** Whether a host, as the URL parser writes it, is an address of the public internet; null if it is a name. */
export function isPublicAddress(host: string): boolean | null {
  const text = host.startsWith("[") ? host.slice(1, -1) : host;
  if (!ipaddr.isValid(text) || (text === host && !ipaddr.IPv4.isValidFourPartDecimal(text))) return null;
  const address = ipaddr.parse(text);
  if (text === AZURE_METADATA || address.range() !== "unicast") return false;
  return address instanceof ipaddr.IPv4 || address.match(GLOBAL_V6);
}
