/** Resident memory of `npm start` while nothing is asked of it. */
import { setTimeout as sleep } from "node:timers/promises";
import { atMost, plain, type Part } from "../parts/row.ts";
import { openRun, startUpstream } from "../servers/servers.ts";
import { startNpm } from "./started.ts";

/** Time without requests before the figure is taken, ms: objects that were used leave the memory after 10 s. */
const IDLE_MS = 12_000;
const IDLE_MB_MAX = 300;

/** Memory after the start and after one request, of every process that `npm start` has: npm, its shell, Node and workerd. */
export async function measureMemory(): Promise<Part> {
  await using upstream = await startUpstream();
  await using gateway = await startNpm(upstream);
  await openRun(gateway);
  await sleep(IDLE_MS);
  const processes = gateway.processes();
  const mb = (bytes: number): number => bytes / 1e6;
  const all = processes.reduce((sum, { rssBytes }) => sum + rssBytes, 0);
  return {
    rows: [
      atMost("memory: npm start when idle, resident, all of its processes", mb(all), IDLE_MB_MAX, " MB"),
      ...processes.map(({ name, rssBytes }) => plain(`memory: of it ${name}`, `${mb(rssBytes).toFixed(0)} MB`)),
    ],
    faults: [],
  };
}
