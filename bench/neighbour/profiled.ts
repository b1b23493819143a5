/** What the gateway's isolate does during a strike: its functions, and the longest stretches without a rest. */
import { readFile } from "node:fs/promises";
import { z } from "zod";
import { startGateway, type Gateway } from "../../test/support/gateway.ts";
import { cpuProfile, foldProfile, longestPieces, type Cost, type CpuProfile } from "../cpu-profile.ts";
import { connectInspector } from "../servers/inspector.ts";
import { gatewayBundle } from "../servers/servers.ts";
import { tableOf } from "../table.ts";

const INTERVAL_US = 500;
const FUNCTIONS = 40;
const PIECES = 4;
const FUNCTIONS_OF_PIECE = 14;

/** A gateway whose isolate can be profiled. */
export async function startProfiled(vars: Record<string, unknown>): Promise<Gateway> {
  const { code } = await gatewayBundle();
  const script = { script: code, wranglerToml: await readFile("wrangler.toml", "utf8") };
  return await startGateway({ vars, script, workerdArgs: ["--inspector-addr=127.0.0.1:0"] });
}

/** Does the work, and prints what it was. */
export async function profiled<T>(gateway: Gateway, work: () => Promise<T>): Promise<T> {
  using inspector = await connectInspector(gateway.inspectorUrl ?? "");
  await inspector.call("Profiler.enable");
  await inspector.call("Profiler.setSamplingInterval", { interval: INTERVAL_US });
  await inspector.call("Profiler.start");
  const result = await work();
  const { profile } = z.object({ profile: cpuProfile }).parse(await inspector.call("Profiler.stop"));
  await print(profile);
  return result;
}

async function print(profile: CpuProfile): Promise<void> {
  const bundle = await gatewayBundle();
  const { busyUs, idleUs, functions } = foldProfile(profile, bundle);
  console.error(`busy ${(busyUs / 1_000).toFixed(0)} ms, idle ${(idleUs / 1_000).toFixed(0)} ms`);
  console.error(tableOf(rowsOf(functions, FUNCTIONS)));
  for (const piece of longestPieces(profile, bundle, PIECES)) {
    console.error(`\n${(piece.us / 1_000).toFixed(0)} ms without a rest`);
    console.error(tableOf(rowsOf(piece.functions, FUNCTIONS_OF_PIECE)));
  }
}

function rowsOf(costs: readonly Cost[], count: number): Record<string, string>[] {
  const ms = (us: number): string => `${(us / 1_000).toFixed(1)} ms`;
  return costs.slice(0, count).map(({ name, selfUs, totalUs }) => ({ self: ms(selfUs), total: ms(totalUs), name }));
}
