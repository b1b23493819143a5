/** A gateway of others as the bench knows it, and how its program starts: in a folder of its own, which goes with it. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort, startOnPort, type Server } from "../servers/process.ts";
import { programOf, type Package } from "./environment.ts";

/** What operators and clients send where a peer wants a key: it guards nothing. */
export const PEER_KEY = "sk-bench-guards-nothing";

/** A budget in USD, over calls with these prices in USD per million tokens. */
export type PeerBudget = { usd: number; prices: { input: number; output: number } };

/** What a configuration depends on. */
export type Place = {
  /** Without a trailing slash and without `/v1`. */
  upstreamUrl: string;
  /** Where the peer listens, on loopback. */
  port: number;
  /** null = none, or one that is never reached where it cannot be left out. */
  budget: PeerBudget | null;
};

export type PeerOptions = Omit<Place, "port">;

/** A running peer, and what its clients send. */
export type StartedPeer = Server & { headers: Record<string, string> };

export type Peer = {
  /** What people read. */
  title: string;
  /** What it is and how it is configured here, for docs/benchmarks.md. */
  about: string;
  /** What pip installs, its own package first. */
  install: Package;
  /** The model that its clients name: as long as the bench's, and one that its catalogue has. */
  model: string;
  /** What it does about a budget: nothing, compares it with what was spent before a call, or reserves before a call. */
  budget: "none" | "soft" | "hard";
  /** True if it writes events of its own in place of the upstream's. */
  rewritesStreams: boolean;
  /** True if a call costs it ten times what it costs others: it is measured in one round, so that the others can have several. */
  isSlow: boolean;
  /** The only port at which it finds its upstream; absent = it finds it anywhere. */
  upstreamPort?: () => Promise<number>;
  /** The file that it reads, or the commands that make its state. */
  config: (place: Place) => string;
  start: (options: PeerOptions) => Promise<StartedPeer>;
};

export type PeerStart = {
  install: Package;
  /** Of the installed programs. */
  program: string;
  /** The text of the configuration file; absent = it reads none. */
  config?: (place: Place) => string;
  configName?: string;
  args: (spot: Spot) => readonly string[];
  env?: (spot: Spot) => Record<string, string>;
  /** Where it answers as soon as it serves. */
  readyPath: string;
  headers?: Record<string, string>;
};

export type Spot = Place & { folder: string; configFile: string };

/** Starts of a peer that may fail until it is not tried again: each may take a minute, in every suite and round. */
const FAILED_STARTS_MAX = 2;
const failedStarts = new Map<string, number>();

/**
 * Starts the program on a free port and waits until it answers; its folder is deleted when it ends. A program that has not started twice
 * is not tried again.
 */
export async function startPeer(peer: PeerStart, options: PeerOptions): Promise<StartedPeer> {
  const failures = failedStarts.get(peer.program) ?? 0;
  if (failures >= FAILED_STARTS_MAX) throw new Error(`it did not start ${failures} times, and was not tried again`);
  const command = programOf(peer.install, peer.program);
  const folder = mkdtempSync(join(tmpdir(), "fanout-bench-peer-"));
  const removeFolder = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    const place = { ...options, port: await freePort() };
    const spot = { ...place, folder, configFile: join(folder, peer.configName ?? "config.yaml") };
    if (peer.config !== undefined) writeFileSync(spot.configFile, peer.config(place));
    const env = peer.env?.(spot) ?? {};
    const { port } = place;
    const server = await startOnPort({ command, args: peer.args(spot), env, port, path: peer.readyPath });
    return {
      ...server,
      headers: peer.headers ?? { authorization: `Bearer ${PEER_KEY}` },
      [Symbol.asyncDispose]: async () => {
        await server[Symbol.asyncDispose]();
        removeFolder();
      },
    };
  } catch (error) {
    failedStarts.set(peer.program, failures + 1);
    removeFolder();
    throw error;
  }
}
