/** Followers of a run's events that send what no follower sends, read nothing or leave, beside one that must get every event. */
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { Random } from "../../../bench/adversary/random.ts";
import type { Site } from "../place.ts";
import { hostileFrames } from "../upgrade.ts";
import { framesIn, type Frame } from "./frames.ts";
import { expected, openCourseRun, refusedFault, type CourseRun } from "./course.ts";

/** Longest time until the honest follower has every event of an ended run, ms. */
const FOLLOWED_MS_MAX = 60_000;
const TEXT = 1;
const CLOSE = 8;
const SWITCHED = "HTTP/1.1 101";

const lineForm = z.looseObject({ seq: z.int() });

export async function sockets(site: Site, random: Random): Promise<string[]> {
  const run = await openCourseRun(site, { budget: { usd: 1 } });
  const honest = follow(site, run);
  const hostile = Array.from({ length: random.integer(1, 6) }, () => follow(site, run));
  const stranger = await refusedUpgrade(site, run);
  try {
    await Promise.all([honest, ...hostile].map(({ opened }) => opened));
    const prompts = Array.from({ length: random.integer(1, 20) }, (_, at) => `socket ${at}`);
    const working = run.ask("/batch", { json: { prompts } });
    await Promise.all(hostile.map((follower) => disturb(follower, random)));
    const faults = [...stranger, ...expected("a batch beside hostile followers", 200, await working)];
    faults.push(...expected("the end of the run", 200, await run.ask(`/runs/${run.id}/close`, { method: "POST" })));
    await Promise.race([honest.ended, sleep(FOLLOWED_MS_MAX, undefined, { ref: false })]);
    const last = (await run.ask(`/runs/${run.id}/log`)).text.trimEnd().split("\n").length;
    return [...faults, ...followedFaults(honest.frames(), last)];
  } finally {
    for (const { socket } of [honest, ...hostile]) socket.resetAndDestroy();
  }
}

type Follower = { socket: Socket; opened: Promise<void>; ended: Promise<void>; frames: () => Frame[] };

function follow({ gateway }: Site, { id, token }: CourseRun): Follower {
  const { hostname, port } = new URL(gateway.url);
  const socket = connect({ host: hostname, port: Number(port) });
  const pieces: Buffer[] = [];
  const ended = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  const opened = new Promise<void>((resolve) => {
    socket.once("close", () => resolve());
    socket.on("data", (piece: Buffer) => {
      pieces.push(piece);
      resolve();
      if (framesOf(pieces).some(({ opcode }) => opcode === CLOSE)) socket.end();
    });
  });
  // A follower that breaks off is meant to.
  socket.on("error", () => undefined);
  const lines = [
    `GET /runs/${id}/events HTTP/1.1`,
    "host: gateway.test",
    `authorization: Bearer ${token}`,
    "connection: Upgrade",
    "upgrade: websocket",
    "sec-websocket-version: 13",
    "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
  ];
  socket.write(`${lines.join("\r\n")}\r\n\r\n`);
  return { socket, opened, ended, frames: () => framesOf(pieces) };
}

function framesOf(pieces: readonly Buffer[]): Frame[] {
  const all = Buffer.concat(pieces);
  const head = all.indexOf("\r\n\r\n");
  return head < 0 || !all.toString("latin1", 0, head).startsWith(SWITCHED) ? [] : framesIn(all.subarray(head + 4));
}

async function disturb({ socket }: Follower, random: Random): Promise<void> {
  const kind = random.weighted([
    ["frames", 60],
    ["deaf", 15],
    ["leave", 15],
    ["flood", 10],
  ]);
  if (kind === "leave") socket.resetAndDestroy();
  else if (kind === "deaf") socket.pause();
  else if (kind === "frames") socket.write(hostileFrames(random));
  else for (let frames = 0; frames < 50 && socket.writable; frames += 1) socket.write(hostileFrames(random));
  await sleep(random.integer(0, 20));
}

/** Another run's token opens no socket. */
async function refusedUpgrade(site: Site, { id, ask: _, ...run }: CourseRun): Promise<string[]> {
  const answer = await site.gateway.fetch(`/runs/${id}/events`, { token: site.names.own.token });
  const text = await answer.text();
  const asStranger = { ...run, id, ask: _, token: site.names.own.token };
  const follower = follow(site, asStranger);
  await follower.opened;
  const isOpen = follower.frames().length > 0;
  follower.socket.resetAndDestroy();
  return [
    ...refusedFault("following another run", { status: answer.status, text, json: null }),
    ...(isOpen ? ["another run's token gets events"] : []),
  ];
}

/** Every event once, in order, and then a normal close. */
function followedFaults(frames: readonly Frame[], last: number): string[] {
  const seqs = frames
    .filter(({ opcode }) => opcode === TEXT)
    .map(({ payload }) => lineForm.parse(JSON.parse(payload.toString())).seq);
  const close = frames.find(({ opcode }) => opcode === CLOSE);
  const code = close === undefined || close.payload.length < 2 ? null : close.payload.readUInt16BE(0);
  const isComplete = seqs.length === last && seqs.every((seq, at) => seq === at + 1);
  return [
    ...(isComplete ? [] : [`of ${last} events the follower has ${seqs.join(",")}`]),
    ...(code === 1_000 ? [] : [`the follower's socket is closed with ${code}`]),
  ];
}
