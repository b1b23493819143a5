/**
 * `npm run bench:gather` = `node bench/gather.ts [--calls=5000] [--latency-ms=1000] [--width=64] [--rounds=1]`: programs that
 * start all their calls at once through a stub, one request each, beside one `/batch` of as many calls in the same run settings.
 * Prints the calls that failed and the wall as a ratio; exit status 1 if a call failed.
 */
import { execFile } from "node:child_process";
import { parseArgs, promisify } from "node:util";
import { join } from "node:path";
import { z } from "zod";
import { ROOT } from "../scripts/root.ts";
import { median } from "./stats.ts";
import { openRun, startGateway, startUpstream } from "./servers/servers.ts";
import { tableOf } from "./table.ts";

const { values } = parseArgs({
  options: {
    calls: { type: "string", default: "5000" },
    "latency-ms": { type: "string", default: "1000" },
    width: { type: "string", default: "64" },
    rounds: { type: "string", default: "1" },
  },
});
const calls = Number(values.calls);
const width = Number(values.width);

/** Threads of the synchronous stub: it needs one for each call that waits. */
const THREADS = 1_000;

const outcome = z.object({ failed: z.array(z.string()), wallMs: z.number() });
type Outcome = z.infer<typeof outcome>;
type Access = { url: string; token: string };

async function program(command: string, args: string[], { url, token }: Access): Promise<Outcome> {
  const pythonPath = ["python", "python-async"].map((folder) => join(ROOT, "stubs", folder)).join(":");
  const env = { ...process.env, PYTHONPATH: pythonPath, FANOUT_URL: url, FANOUT_TOKEN: token };
  const { stdout } = await promisify(execFile)(command, args, { env, maxBuffer: 64 * 1024 * 1024 });
  return outcome.parse(JSON.parse(stdout));
}

const ended = z.object({ errors: z.array(z.object({ message: z.string() }).nullable()) });

async function oneBatch({ url, token }: Access): Promise<Outcome> {
  const startedMs = performance.now();
  const prompts = Array.from({ length: calls }, (_, each) => `prompt ${each}`);
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const response = await fetch(`${url}/batch`, { method: "POST", headers, body: JSON.stringify({ prompts }) });
  const { errors } = ended.parse(await response.json());
  const failed = errors.flatMap((error) => (error === null ? [] : [error.message]));
  return { failed, wallMs: performance.now() - startedMs };
}

const script = (name: string): string => join(ROOT, "bench/gather", name);
const variants: Record<string, (access: Access) => Promise<Outcome>> = {
  "one /batch": oneBatch,
  "Promise.all": (access) => program(process.execPath, [script("promises.mjs"), String(calls)], access),
  "Python threads": (access) => program("python3", [script("threads.py"), String(calls), String(THREADS)], access),
  "two asyncio.gather": (access) => program("python3", [script("two_gathers.py"), String(calls)], access),
};

const found = new Map<string, Outcome[]>(Object.keys(variants).map((name) => [name, []]));
await using upstream = await startUpstream({ latencyMs: Number(values["latency-ms"]) });
for (let round = 0; round < Number(values.rounds); round++) {
  for (const [name, run] of Object.entries(variants)) {
    await using gateway = await startGateway(upstream);
    const token = await openRun(gateway, undefined, { max_parallel: width });
    const result = await run({ url: gateway.url, token });
    found.get(name)?.push(result);
    console.error(`${name}: ${result.failed.length} failed, ${result.wallMs.toFixed(0)} ms ${result.failed[0] ?? ""}`);
  }
}
const wallOf = (name: string): number => median((found.get(name) ?? []).map(({ wallMs }) => wallMs));
const failures = [...found.values()].flat().flatMap(({ failed }) => failed);
const rows = [...found].map(([variant, outcomes]) => ({
  variant,
  calls: String(calls),
  failed: String(outcomes.reduce((sum, { failed }) => sum + failed.length, 0)),
  "wall ms": wallOf(variant).toFixed(0),
  "÷ one /batch": (wallOf(variant) / wallOf("one /batch")).toFixed(2),
}));
console.log(`\n${tableOf(rows)}`);
process.exit(failures.length > 0 ? 1 : 0);
