/**
 * experiential, the other gateway with a durable ledger whose limits are hard. Its state is a database that its own commands make, which
 * takes many seconds: so it is made once for each budget, and each start gets a copy. The database has the address of the upstream, which
 * is therefore always at the same port.
 */
import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { MODEL } from "../load/prompts.ts";
import { freePort } from "../servers/process.ts";
import { programOf, type Package } from "./environment.ts";
import { type Peer, PEER_KEY, type PeerBudget, type PeerOptions, startPeer, type StartedPeer } from "./peer.ts";

const install: Package = {
  name: "experiential",
  version: "0.7.220",
  others: ["exp-gateway-native==0.3.170"],
  pythonMinorMin: 12,
};

/** Where no budget is measured: prices of the bench's calls, and a limit that is never reached, so that its ledger has work to do. */
const PLENTY: PeerBudget = { usd: 100_000, prices: { input: 0.15, output: 0.6 } };
const NANO_PER_USD = 1e9;
/** The environment variable that has the key of its upstream. */
const CREDENTIAL = "BENCH_UPSTREAM_KEY";
const IDENTITY = "bench";
/** What a call without a limit of its own may answer: it refuses calls of models without one. */
const OUTPUT_TOKENS_MAX = 1_024;
const ROOT = "root";

/** The arguments of each command that makes its state, in their order; the last one prints the key of its clients. */
function commands({ upstreamUrl, budget }: PeerOptions): string[][] {
  const { usd, prices } = budget ?? PLENTY;
  const nano = (value: number): string => String(Math.round(value * NANO_PER_USD));
  const gateway = (...args: string[]): string[] => ["config", "gateway", ...args, "--root", ROOT, "--json"];
  const quiet = (...args: string[]): string[] => gateway(...args, "--non-interactive");
  const provider = [
    "--provider",
    "openai-compatible",
    "--base-url",
    `${upstreamUrl}/v1`,
    "--credential-env",
    CREDENTIAL,
  ];
  const priced = [
    "--input-price",
    nano(prices.input),
    "--output-price",
    nano(prices.output),
    "--pricing-source",
    "bench",
    "--maximum-output-tokens",
    String(OUTPUT_TOKENS_MAX),
  ];
  const period = new Date().toISOString().slice(0, "2026-01".length);
  const limit = ["--scope", "identity", "--identity", IDENTITY, "--limit-nano-usd", nano(usd), "--strict-unknown-cost"];
  return [
    ["config", "telemetry", "disable"],
    gateway("init"),
    quiet("provider", "add", "up", ...provider),
    quiet("alias", "create", MODEL, "--deployment", `up:${MODEL}`, "--exact-model", MODEL, ...priced),
    quiet("identity", "create", IDENTITY),
    quiet("grant", "add", IDENTITY, MODEL),
    quiet("budget", "set", "--period", period, ...limit),
    gateway("key", "issue", IDENTITY, "--key-id", "bench"),
  ];
}

const receipt = z.object({ data: z.object({ raw_key: z.string() }) });

type Prepared = { folder: string; key: string };

const prepared = new Map<string, Promise<Prepared>>();
const COMMANDS_MS_MAX = 240_000;

/** Makes the state for a budget, once in this process. */
async function prepare(options: PeerOptions): Promise<Prepared> {
  const place = JSON.stringify(options);
  const before = prepared.get(place);
  if (before !== undefined) return await before;
  const making = make(options);
  prepared.set(place, making);
  return await making;
}

async function make(options: PeerOptions): Promise<Prepared> {
  const folder = mkdtempSync(join(tmpdir(), "fanout-bench-experiential-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const file = join(import.meta.dirname, "experiential.py");
  const { stdout } = await promisify(execFile)(
    programOf(install, "python"),
    [file, JSON.stringify(commands(options))],
    { cwd: folder, env: { ...process.env, ...envIn(folder) }, timeout: COMMANDS_MS_MAX },
  );
  const { data } = receipt.parse(JSON.parse(stdout.trim().split("\n").at(-1) ?? ""));
  return { folder, key: data.raw_key };
}

/** It keeps settings in the home of whoever starts it. */
function envIn(folder: string): Record<string, string> {
  return { HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder, [CREDENTIAL]: PEER_KEY };
}

async function start(options: PeerOptions): Promise<StartedPeer> {
  const { folder, key } = await prepare(options);
  return await startPeer(
    {
      install,
      program: "exp",
      args: (spot) => {
        cpSync(folder, spot.folder, { recursive: true });
        return ["run", "--root", join(spot.folder, ROOT), "--ghost", "--non-interactive", "--port", String(spot.port)];
      },
      env: (spot) => envIn(spot.folder),
      readyPath: "/health",
      headers: { authorization: `Bearer ${key}` },
    },
    options,
  );
}

let upstreamPort: Promise<number> | undefined;

export const experiential: Peer = {
  title: "experiential",
  about: "Python and Rust, a durable ledger with hard limits; one identity with a limit for the month, `--ghost`",
  install,
  model: MODEL,
  budget: "hard",
  rewritesStreams: true,
  isSlow: true,
  upstreamPort: () => (upstreamPort ??= freePort()),
  config: (place) =>
    commands(place)
      .map((args) => ["exp", ...args].join(" "))
      .join("\n"),
  start,
};
