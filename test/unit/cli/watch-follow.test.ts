import type { ServerResponse } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import type { WatchEvent } from "../../../cli/watch/event.ts";
import { type Ending, follow, type FollowDeps } from "../../../cli/watch/follow.ts";
import type { Credential } from "../../../cli/credential.ts";
import { readLog } from "../../../cli/watch/log.ts";
import { RunLogWriter } from "../../support/run-log.ts";
import { type Script, type SseServer, startSseServer } from "../../support/sse-server.ts";

const CREDENTIAL: Credential = { value: "token", name: "FANOUT_TOKEN", from: "FANOUT_TOKEN", isRunToken: true };

function history(count: number): string[] {
  const log = new RunLogWriter();
  while (log.lines.length < count - 1) log.add("throttled", { upstream: "sim", retry_after_ms: 1 });
  log.add("run_closed", { status: "closed" });
  return log.lines;
}

let server: SseServer | null = null;
afterEach(async () => {
  await server?.stop();
  server = null;
});

type Followed = { seqs: number[]; told: string[]; sleeps: number[]; ending: Ending };

async function followScript(script: Script, deps: Partial<FollowDeps> = {}, stopAt = Infinity): Promise<Followed> {
  server = await startSseServer(script);
  return followAt(server.url, deps, stopAt);
}

async function followAt(url: string, deps: Partial<FollowDeps> = {}, stopAt = Infinity): Promise<Followed> {
  const stop = new AbortController();
  const seqs: number[] = [];
  const told: string[] = [];
  const sleeps: number[] = [];
  const listener = {
    events(events: WatchEvent[]) {
      seqs.push(...events.map(({ seq }) => seq));
      told.push("events");
      if (seqs.length >= stopAt) stop.abort();
    },
    connected: () => void told.push("connected"),
    lost: (why: string) => void told.push(why.replace(url, "URL")),
  };
  const sleep = async (delayMs: number) => void sleeps.push(delayMs);
  const source = { gateway: { url, credential: CREDENTIAL }, runId: "run_1" };
  const ending = await follow(source, { fetch, sleep, ...deps }, { listener, signal: stop.signal });
  return { seqs, told, sleeps, ending };
}

describe("follow", () => {
  it("hands out every event and ends with the run", async () => {
    const { seqs, told, ending } = await followScript({ lines: history(5) });
    expect(seqs).toEqual([1, 2, 3, 4, 5]);
    expect(told).toEqual(["connected", "events"]);
    expect(ending).toEqual({ ended: "run" });
    expect(server?.resumedAfter).toEqual([""]);
    expect(server?.authorizations).toEqual(["Bearer token"]);
  });

  it("resumes after its last event over many lost connections, and hands out each event once", async () => {
    const lines = history(100);
    const connection = (number: number) =>
      number < 14
        ? { tells: 7, last: number % 2 === 0 ? ("cut" as const) : ("end" as const) }
        : { last: "end" as const };
    const { seqs, ending } = await followScript({ lines, connection });
    expect(seqs).toEqual(lines.map((_, place) => place + 1));
    expect(server?.resumedAfter).toEqual(["", ...Array.from({ length: 14 }, (_, place) => String(7 * (place + 1)))]);
    expect(ending).toEqual({ ended: "run" });
  });

  it("hands out nothing twice where the gateway repeats itself", async () => {
    const lines = history(4);
    const twice = [...lines.slice(0, 3), ...lines.slice(0, 3), ...lines.slice(3)];
    const { seqs } = await followScript({ lines: twice });
    expect(seqs).toEqual([1, 2, 3, 4]);
  });

  it("says that the connection is lost, and that there is a new one", async () => {
    const connection = (number: number) => ({ tells: 2, last: number === 0 ? ("end" as const) : ("cut" as const) });
    const { told } = await followScript({ lines: history(9), connection }, {}, 4);
    expect(told).toEqual(["connected", "events", "The stream ended before the run did.", "connected", "events"]);
  });

  it("waits twice as long after each failure in a row, up to 5 s, and begins anew after an event", async () => {
    const connection = (number: number) =>
      number === 7 || number === 9 ? { tells: 1, last: "cut" as const } : { tells: 0, last: "end" as const };
    const { sleeps, ending } = await followScript({ lines: history(2), connection });
    expect(sleeps).toEqual([200, 400, 800, 1_600, 3_200, 5_000, 5_000, 200, 400, 200]);
    expect(ending).toEqual({ ended: "run" });
  });

  it("reads on where the run has closed but its stream was cut off", async () => {
    const lines = [...history(2), ...history(3).slice(2)];
    const connection = (number: number) =>
      number === 0 ? { tells: 2, last: "cut" as const } : { last: "end" as const };
    const { seqs, ending } = await followScript({ lines, connection });
    expect(seqs).toEqual([1, 2, 3]);
    expect(ending).toEqual({ ended: "run" });
  });

  it("gives up a connection that has fallen silent", async () => {
    const connection = (number: number) =>
      number === 0 ? { tells: 1, last: "stay" as const } : { last: "end" as const };
    const { seqs, told } = await followScript({ lines: history(3), connection }, { silenceMs: 500 });
    expect(seqs).toEqual([1, 2, 3]);
    expect(told[2]).toBe("Lost URL: no data for 0.5 s.");
  });

  it("stops at once when it is told to, in the middle of a connection", async () => {
    const connection = () => ({ tells: 2, last: "stay" as const });
    const { seqs, ending } = await followScript({ lines: history(9), connection }, {}, 2);
    expect(seqs).toEqual([1, 2]);
    expect(ending).toEqual({ ended: "stopped" });
  });

  it("lets an error of its listener through", async () => {
    server = await startSseServer({ lines: history(2) });
    const events = () => {
      throw new Error("a bug");
    };
    const listener = { events, connected: () => {}, lost: () => {} };
    const source = { gateway: { url: server.url, credential: CREDENTIAL }, runId: "run_1" };
    const following = follow(
      source,
      { fetch, sleep: async () => {} },
      { listener, signal: new AbortController().signal },
    );
    await expect(following).rejects.toThrow("a bug");
  });
});

describe("follow says what to do", () => {
  const answering = (status: number, message: string, type = "application/json") => ({
    lines: [],
    answer: (_: unknown, reply: ServerResponse) => {
      reply.writeHead(status, { "content-type": type });
      reply.end(JSON.stringify({ error: { message, code: "x" } }));
      return true;
    },
  });

  it.each([
    [
      401,
      "the token has \u001b[31mexpired",
      "The gateway does not accept the credential from FANOUT_TOKEN (the token has expired). " +
        "Set FANOUT_TOKEN to the run's token, or ADMIN_KEY to the operator's key.",
    ],
    [404, "run run_1 not found", "No such run that the token from FANOUT_TOKEN may read at URL (run run_1 not found)."],
    [500, "UPSTREAMS: bad", "GET /runs/run_1/events returned 500 (UPSTREAMS: bad)."],
    [200, "", "URL/runs/run_1/events is not a fanout gateway: expected text/event-stream, got application/json."],
  ])("where the gateway answers %i", async (status, said, message) => {
    const { ending } = await followScript(answering(status, said));
    expect(ending).toEqual({ ended: "problem", message: message.replace("URL", server?.url ?? "") });
  });

  it("where nothing listens", async () => {
    const gone = await startSseServer({ lines: [] });
    await gone.stop();
    const { ending } = await followAt(gone.url);
    const message = `Nothing listens at ${gone.url}. Start the gateway with npm start, or name another one with --url or FANOUT_URL.`;
    expect(ending).toEqual({ ended: "problem", message });
  });

  it("where what arrives is no event", async () => {
    const { ending } = await followScript({ lines: ["<html>"] });
    const message = `${server?.url} sent a line that does not belong to the log of run run_1.`;
    expect(ending).toEqual({ ended: "problem", message });
  });

  it("only once it cannot get better: a gateway that restarts is waited for", async () => {
    const lines = history(4);
    let requests = 0;
    const { seqs, ending } = await followScript({
      lines,
      connection: (number) => (number === 0 ? { tells: 2, last: "cut" } : { last: "end" }),
      answer: (_, reply) => {
        requests += 1;
        if (requests !== 2 && requests !== 3) return false;
        reply.writeHead(requests === 2 ? 503 : 429).end();
        return true;
      },
    });
    expect(seqs).toEqual([1, 2, 3, 4]);
    expect(ending).toEqual({ ended: "run" });
  });
});

describe("readLog", () => {
  async function read(script: Script): Promise<{ seqs: number[]; problem: string | null }> {
    server = await startSseServer(script);
    const seqs: number[] = [];
    const onEvents = (events: WatchEvent[]) => void seqs.push(...events.map(({ seq }) => seq));
    const source = { gateway: { url: server.url, credential: CREDENTIAL }, runId: "run_1" };
    return { problem: await readLog(source, { fetch, signal: new AbortController().signal, onEvents }), seqs };
  }

  it("hands out the history up to now", async () => {
    expect(await read({ lines: history(3) })).toEqual({ seqs: [1, 2, 3], problem: null });
  });

  it("takes a last line without its end", async () => {
    const lines = history(2).join("\n");
    const answer: Script["answer"] = (_, reply) => {
      reply.writeHead(200, { "content-type": "application/x-ndjson" }).end(lines);
      return true;
    };
    expect(await read({ lines: [], answer })).toEqual({ seqs: [1, 2], problem: null });
  });

  it("says when what arrives is no log", async () => {
    const { problem } = await read({ lines: [...history(1), "17"] });
    expect(problem).toMatch(/sent a line that does not belong to the log of run run_1\.$/);
  });

  it("says when the connection is lost", async () => {
    const answer: Script["answer"] = (_, reply) => {
      reply.writeHead(200, { "content-type": "application/x-ndjson" });
      reply.write(`${history(1)[0]}\n`, () => reply.socket?.destroy());
      return true;
    };
    const { seqs, problem } = await read({ lines: [], answer });
    expect(seqs).toEqual([1]);
    expect(problem).toMatch(/^The connection to .* is lost: /);
  });
});
