/** Clients of `npm start` that leave before the first byte: how soon their calls end at the upstream. */
import { connect, type Socket } from "node:net";
import { atMost, exact, plain, type Part } from "../parts/row.ts";
import { openRun } from "../servers/servers.ts";
import { percentile } from "../stats.ts";
import { startSilentUpstream } from "./silent-upstream.ts";
import { startNpm } from "./started.ts";

/** How a client leaves; `aborts` is what an aborted `fetch` does. */
const KINDS = ["closes", "aborts", "resets"] as const;
const NOTICED_MS_MAX = 100;
/** What is not noticed by then is not noticed, ms. */
const WAIT_MS_MAX = 5_000;

type Client = { leave: () => void };
type Post = { url: string; token: string; body: string };

/** Starts `clients` calls one after the other, each of which leaves as soon as its call is at the upstream. */
export async function measureLeaving(clients: number): Promise<Part> {
  await using upstream = await startSilentUpstream();
  await using gateway = await startNpm({ ...upstream, rssBytes: () => 0, cpuMs: () => 0, output: () => "" });
  const token = await openRun(gateway);
  const noticedMs: number[] = [];
  const faults: string[] = [];
  for (let at = 0; at < clients; at += 1) {
    const name = `client-${at}`;
    const kind = KINDS[at % KINDS.length] ?? "closes";
    const client = started(kind, { url: `${gateway.url}/query`, token, body: JSON.stringify({ prompt: name }) });
    await upstream.arrived(name);
    const leftMs = performance.now();
    client.leave();
    const closedMs = await within(WAIT_MS_MAX, upstream.closed(name));
    if (closedMs === null) faults.push(`${name}, which ${kind}, was not noticed for ${WAIT_MS_MAX} ms`);
    else noticedMs.push(closedMs - leftMs);
  }
  const inTime = noticedMs.filter((ms) => ms <= NOTICED_MS_MAX).length;
  const what = `leaving: clients that close, abort or reset before the first byte, noticed within ${NOTICED_MS_MAX} ms`;
  return {
    rows: [
      exact(what, `${inTime} of ${clients}`, `= ${clients}`, inTime === clients),
      plain("leaving: noticed after, median", `${percentile(noticedMs, 0.5).toFixed(1)} ms`),
      atMost("leaving: noticed after, at most", Math.max(...noticedMs), NOTICED_MS_MAX, " ms"),
    ],
    faults,
  };
}

function started(kind: (typeof KINDS)[number], { url, token, body }: Post): Client {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  if (kind === "aborts") {
    const controller = new AbortController();
    fetch(url, { method: "POST", headers, body, signal: controller.signal }).catch(() => undefined);
    return { leave: () => controller.abort() };
  }
  const { hostname, port, pathname } = new URL(url);
  const socket: Socket = connect({ host: hostname, port: Number(port) });
  socket.on("error", () => undefined);
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(
    `POST ${pathname} HTTP/1.1\r\nhost: localhost\r\n${head.join("")}content-length: ${body.length}\r\n\r\n${body}`,
  );
  return { leave: () => void (kind === "closes" ? socket.end() : socket.resetAndDestroy()) };
}

async function within(ms: number, work: Promise<number>): Promise<number | null> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<null>((resolve) => (timer = setTimeout(resolve, ms, null)));
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
