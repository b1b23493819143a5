/** The gateways of others that PyPI has, a line each: a new peer is a file and a line. Portkey's, which npm has, is in portkey.ts. */
import { envoy } from "./envoy.ts";
import { experiential } from "./experiential.ts";
import { ferrogw } from "./ferrogw.ts";
import { litellm } from "./litellm.ts";
import type { Peer } from "./peer.ts";
import { rolter } from "./rolter.ts";
import { smg } from "./smg.ts";

export const PEERS = { envoy, rolter, smg, ferrogw, experiential, litellm } satisfies Record<string, Peer>;

export type PeerName = keyof typeof PEERS;

export const PEER_NAMES = Object.keys(PEERS).filter(isPeer);

export function isPeer(name: string): name is PeerName {
  return Object.hasOwn(PEERS, name);
}

/** The peers of `--peers`: a list with commas, or all; throws for a name that is none. */
export function peersIn(list: string | undefined): PeerName[] {
  if (list === undefined) return [];
  if (list === "all") return [...PEER_NAMES];
  return list.split(",").map((name) => {
    if (!isPeer(name)) throw new Error(`no peer ${name}; there are ${PEER_NAMES.join(", ")}`);
    return name;
  });
}
