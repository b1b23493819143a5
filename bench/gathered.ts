/**
 * `npm run bench:gathered` = `node bench/gathered.ts [--runs=50] [--calls=10] [--load=8]`: programs that start some calls at once,
 * one request each, at the run's default window, beside as many processes that do nothing but compute. Counts the runs in which
 * the log announces them as one group, once, with all of them; of the program that makes calls before, as the last group. Exit status 1 if
 * there is another one.
 */
import { execFile, spawn } from "node:child_process";
import { parseArgs, promisify } from "node:util";
import { join } from "node:path";
import { z } from "zod";
import { ROOT } from "../scripts/root.ts";
import { openRun, startGateway, startUpstream } from "./servers/servers.ts";
import { tableOf } from "./table.ts";

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "50" },
    calls: { type: "string", default: "10" },
    load: { type: "string", default: "8" },
  },
});
const [runs, calls, load] = [Number(values.runs), Number(values.calls), Number(values.load)];

/** The calls that it makes before are the first group, and what counts is the next one. */
const IN_CREDIT = "Promise.all in credit";

const PROGRAMS: Record<string, string[]> = {
  "asyncio.gather": ["python3", join(ROOT, "bench/gather/ten.py"), String(calls)],
  "Promise.all": [process.execPath, join(ROOT, "bench/gather/promises.mjs"), String(calls)],
  [IN_CREDIT]: [process.execPath, join(ROOT, "bench/gather/raw.mjs"), String(calls)],
};

const event = z.looseObject({ event_type: z.string(), count: z.number().optional() });

async function announced(url: string, token: string): Promise<number[]> {
  const headers = { authorization: `Bearer ${token}` };
  const { id } = z.looseObject({ id: z.string() }).parse(await (await fetch(`${url}/run`, { headers })).json());
  await fetch(`${url}/runs/${id}/flush`, { method: "POST", headers });
  const lines = (await (await fetch(`${url}/runs/${id}/log`, { headers })).text()).trim().split("\n");
  const events = lines.map((line) => event.parse(JSON.parse(line)));
  return events.filter(({ event_type: type }) => type === "group_started").map(({ count = 0 }) => count);
}

const busy = Array.from({ length: load }, () => spawn(process.execPath, ["-e", "for (;;);"], { stdio: "ignore" }));
const rows: Record<string, string>[] = [];
let others = 0;
try {
  await using upstream = await startUpstream({ latencyMs: 300 });
  await using gateway = await startGateway(upstream);
  for (const [variant, [command = "", ...args]] of Object.entries(PROGRAMS)) {
    const split: string[] = [];
    for (let run = 0; run < runs; run++) {
      const token = await openRun(gateway, undefined, { max_parallel: 64 });
      const env = {
        ...process.env,
        PYTHONPATH: join(ROOT, "stubs/python-async"),
        FANOUT_URL: gateway.url,
        FANOUT_TOKEN: token,
      };
      await promisify(execFile)(command, args, { env });
      const all = await announced(gateway.url, token);
      const counts = variant === IN_CREDIT ? all.slice(1) : all;
      if (counts.length !== 1 || counts[0] !== calls) split.push(`[${counts.join(", ")}]`);
    }
    others += split.length;
    rows.push({
      variant,
      runs: String(runs),
      [`one group of ${calls}`]: String(runs - split.length),
      others: split.join(" "),
    });
  }
} finally {
  for (const each of busy) each.kill("SIGKILL");
}
console.log(`\n${tableOf(rows)}`);
process.exitCode = others === 0 ? 0 : 1;
