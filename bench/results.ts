/** Result files: what was measured, raw, with the machine it was measured on. */
import { mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { cpus } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { type PeerName, PEERS } from "./peers/table.ts";
import type { ResultFile } from "./report/data.ts";

const FOLDER = join(import.meta.dirname, "results");

/** Writes `text` to a file in bench/results, `<time>-<name>`; returns its path. */
export function writeResult(name: string, text: string): string {
  mkdirSync(FOLDER, { recursive: true });
  const path = join(FOLDER, `${new Date().toISOString().replaceAll(/[:.]/g, "-")}-${name}`);
  writeFileSync(path, text);
  return path;
}

/** The gateways of others that take part: Portkey's always does. */
export function gatewaysOf(peers: readonly PeerName[]): ResultFile["gateways"] {
  const portkey = {
    variant: "portkey",
    title: "Portkey",
    version: portkeyVersion(),
    budget: "none",
    about: PORTKEY_ABOUT,
  } as const;
  const others = peers.map((variant) => {
    const { title, budget, about, install } = PEERS[variant];
    return { variant, title, version: install.version, budget, about };
  });
  return [...others, portkey];
}

const packageJson = z.object({ version: z.string() });
const peersJson = z.object({ dependencies: z.object({ "@portkey-ai/gateway": z.string() }) });

const PORTKEY_ABOUT = "Node, from npm, without its console. Its budgets belong to its hosted service";

function portkeyVersion(): string {
  const require = createRequire(import.meta.url);
  return peersJson.parse(require("./peers/package.json")).dependencies["@portkey-ai/gateway"];
}

/** What the figures depend on beside the code. */
export function machine(): Record<string, string | number> {
  const processors = cpus();
  const workerd = packageJson.parse(createRequire(import.meta.url)("workerd")).version;
  return { cpu: processors[0]?.model ?? "unknown", cores: processors.length, node: process.version, workerd };
}

/** Versions of what takes part, the peers among them. */
export function versions(peers: readonly PeerName[]): Record<string, string> {
  const require = createRequire(import.meta.url);
  const versionIn = (path: string): string => packageJson.parse(require(path)).version;
  return {
    fanout: versionIn("../package.json"),
    workerd: packageJson.parse(require("workerd")).version,
    Node: process.version.slice(1),
    Portkey: portkeyVersion(),
    ...Object.fromEntries(peers.map((name) => [PEERS[name].title, PEERS[name].install.version])),
  };
}
