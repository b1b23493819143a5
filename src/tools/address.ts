/**
 * Which IP addresses are the public internet's. IPv4 lists what is not, after IANA's registry of special purposes; IPv6
 * lists what is, because only one eighth of it has been given out and new special ranges lie outside.
 */

/** Not public: this network, private, carrier NAT, loopback, link-local and metadata, protocols, examples, multicast, reserved. */
const RESERVED_V4 = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
  // Azure's metadata service: it answers for the machine that calls it, although the address is public.
  "168.63.129.16/32",
].map(blockOf);

/** Of the global eighth: protocol assignments with Teredo, examples, 6to4 (which carries an IPv4 address), examples. */
const RESERVED_V6 = [
  { groups: [0x2001, 0x0000], bits: 23 },
  { groups: [0x2001, 0x0db8], bits: 32 },
  { groups: [0x2002, 0x0000], bits: 16 },
  { groups: [0x3fff, 0x0000], bits: 20 },
].map(({ groups, bits }) => ({ base: upper32(groups), bits }));

const GLOBAL_V6 = { base: upper32([0x2000, 0]), bits: 3 };

/** Four decimal numbers, as the URL parser writes every spelling of an IPv4 address. */
const IPV4 = /^\d{1,3}(?:\.\d{1,3}){3}$/;

/** Whether a host, as the URL parser writes it, is an address of the public internet; null if it is a name. */
export function isPublicAddress(host: string): boolean | null {
  if (host.startsWith("[")) return isPublicV6(host.slice(1, -1));
  return IPV4.test(host) ? !RESERVED_V4.some((block) => isWithin(numberOf(host), block)) : null;
}

function isPublicV6(address: string): boolean {
  const upper = upper32(groupsOf(address));
  return isWithin(upper, GLOBAL_V6) && !RESERVED_V6.some((block) => isWithin(upper, block));
}

/** The eight groups of an IPv6 address, of which `::` replaces those that are zero. */
function groupsOf(address: string): number[] {
  const [head = "", tail] = address.split("::", 2);
  const read = (part: string): number[] =>
    part === "" ? [] : part.split(":").map((group) => Number.parseInt(group, 16));
  if (tail === undefined) return read(head);
  const [first, last] = [read(head), read(tail)];
  return [...first, ...Array.from({ length: 8 - first.length - last.length }, () => 0), ...last];
}

function upper32([first = 0, second = 0]: readonly number[]): number {
  return first * 65_536 + second;
}

type Block = { base: number; bits: number };

function blockOf(text: string): Block {
  const [address = "", bits = ""] = text.split("/");
  return { base: numberOf(address), bits: Number(bits) };
}

function numberOf(address: string): number {
  return address.split(".").reduce((number, part) => number * 256 + Number(part), 0);
}

function isWithin(address: number, { base, bits }: Block): boolean {
  const size = 2 ** (32 - bits);
  return Math.floor(address / size) === Math.floor(base / size);
}
