/** Sends the hostile requests of a seed, holds every answer against the oracle, and looks after the gateway meanwhile. */
import { z } from "zod";
import { courseFaults } from "./courses/courses.ts";
import { surfaceOf, type Surface } from "./document.ts";
import { faultsOf } from "./oracle.ts";
import { lookAt, renew, residentBytes, startPlace, type Place, type Site } from "./place.ts";
import { drawRequest, type HostileRequest } from "./request.ts";
import { exchange, type Patience } from "./wire.ts";

export type Plan = {
  seed: number;
  /** Indexes of the requests that are sent, in this order. */
  indexes: readonly number[];
  /** Requests in flight at once. */
  abreast: number;
  progress?: (line: string) => void;
  /** Gets each violation when it is found: a campaign may be ended before its end. */
  found?: (violation: Violation) => void;
};

/** `index` null: found by a look at the gateway between two requests, after `after`. */
export type Violation = { index: number | null; after: number; what: string; request: string; answer: string };

export type Outcome = {
  violations: readonly Violation[];
  requests: number;
  /** Answers by status; those without one by how they ended. */
  statuses: Readonly<Record<string, number>>;
  /** Documented operations of which no request succeeded: nothing but their first checks was tried. */
  neverAccepted: readonly string[];
  /** Resident memory of the two gateways at the first look and at the last, MB. */
  memoryMb: readonly { first: number; last: number }[];
};

/** A good request is made after so many hostile ones. */
export const LOOK_EVERY = 500;
/** Long enough for a busy machine; an answer takes milliseconds. */
const PATIENCE: Patience = { answerMs: 60_000, waitMs: 250 };
/**
 * Resident memory that a gateway may have in the end, MB: 540 after 30,000 requests were seen, most of it garbage. One that keeps
 * what it was sent has more after some thousand.
 */
const MEMORY_MB_MAX = 2_000;

export async function campaign({ seed, indexes, abreast, progress = () => undefined, found }: Plan): Promise<Outcome> {
  const place = await startPlace();
  try {
    const surface = surfaceOf(await (await place.plain.gateway.fetch("/openapi.json")).json());
    const state: State = {
      place,
      surface,
      seed,
      found,
      violations: [],
      statuses: new Map(),
      outputs: new Map(),
      accepted: new Set(),
      hasEnded: false,
    };
    const sites = [place.plain, place.withFiles];
    const first = await residentMb(sites);
    let last = first;
    for (let from = 0; from < indexes.length; from += LOOK_EVERY) {
      const some = indexes.slice(from, from + LOOK_EVERY);
      await sendAll(state, some, abreast);
      for (const site of sites) if (!(await serves(site))) reportEnd(state, site, some.at(-1) ?? 0);
      if (state.hasEnded) break;
      for (const site of sites) await look(state, site, some.at(-1) ?? 0);
      last = await residentMb(sites);
      progress(`${from + some.length} requests, ${state.violations.length} violations, ${last.join(" and ")} MB`);
    }
    const memoryMb = first.map((mb, at) => ({ first: mb, last: last[at] ?? 0 }));
    for (const { last: resident } of memoryMb) {
      if (resident > MEMORY_MB_MAX) report(state, seenAfter(indexes.at(-1) ?? 0, `a gateway has ${resident} MB`));
    }
    const operations = surface.operations.map(({ method, path }) => `${method} ${path}`);
    const neverAccepted = operations.filter((operation) => !state.accepted.has(operation));
    const statuses = Object.fromEntries(state.statuses);
    return { violations: state.violations, requests: indexes.length, statuses, neverAccepted, memoryMb };
  } finally {
    await place.stop();
  }
}

async function residentMb(sites: readonly Site[]): Promise<number[]> {
  const bytes = await Promise.all(sites.map(residentBytes));
  return bytes.map((resident) => Math.round(resident / 1e6));
}

type State = {
  place: Place;
  surface: Surface;
  seed: number;
  violations: Violation[];
  found: ((violation: Violation) => void) | undefined;
  statuses: Map<string, number>;
  accepted: Set<string>;
  /** What each gateway had printed at the last look. */
  outputs: Map<Site, string>;
  /** Whether a gateway's process has ended: no later request can be answered. */
  hasEnded: boolean;
};

async function serves({ gateway }: Site): Promise<boolean> {
  return gateway.fetch("/health").then(
    (answer) => answer.ok,
    () => false,
  );
}

function reportEnd(state: State, { gateway, hasFiles }: Site, after: number): void {
  state.hasEnded = true;
  const what = `the gateway ${hasFiles ? "with" : "without"} R2 serves no more; it printed last: ${gateway.output().slice(-4_000)}`;
  report(state, seenAfter(after, what));
}

async function sendAll(state: State, indexes: readonly number[], abreast: number): Promise<void> {
  let next = 0;
  const client = async (): Promise<void> => {
    for (let index = indexes[next++]; index !== undefined; index = indexes[next++]) await sendOne(state, index);
  };
  await Promise.all(Array.from({ length: abreast }, client));
}

/** One of four requests is for the gateway with R2, which Miniflare serves. The other one has no routes of files. */
function targetOf({ place, surface }: State, index: number): { site: Site; surface: Surface } {
  const { operations } = surface;
  const ofFiles = operations.filter(({ path }) => /^\/v1\/(?:files|uploads|batches)/.test(path));
  const some =
    index % 4 === 0 ? [...operations, ...ofFiles, ...ofFiles] : operations.filter((one) => !ofFiles.includes(one));
  return { site: index % 4 === 0 ? place.withFiles : place.plain, surface: { ...surface, operations: some } };
}

async function sendOne(state: State, index: number): Promise<void> {
  const { site, surface } = targetOf(state, index);
  const request = drawRequest(surface, site.names, { seed: state.seed, index });
  const found = await exchange(site.gateway.url, request, PATIENCE);
  const key = found.kind === "answer" ? String(found.answer.status) : found.kind;
  if (found.kind === "answer" && found.answer.status < 300) state.accepted.add(request.operation);
  state.statuses.set(key, (state.statuses.get(key) ?? 0) + 1);
  // The operator's key opens every door, and its own answers name it nowhere.
  const secrets = site.secrets.filter(({ what }) => request.sender !== "operator" || !what.includes("another run"));
  for (const what of faultsOf(request, found, secrets)) {
    const shown = found.kind === "answer" ? `${found.answer.status} ${found.answer.body.toString("utf8")}` : found.kind;
    report(state, { index, after: index, what, request: shownRequest(request), answer: shown.slice(0, 600) });
  }
}

const SHOWN_CHARS = 1_500;

/** The beginning of a request, without its credential. */
function shownRequest({ bytes, ending, sender }: HostileRequest): string {
  const text = Buffer.from(bytes.subarray(0, SHOWN_CHARS)).toString("latin1");
  return `${sender}, ${ending}: ${text.replace(/(fo-(?:run|pull)-)[\w.-]+/g, "$1…").replace(/(Basic|Bearer) [\w+/=-]{30,}/g, "$1 …")}`;
}

function report(state: State, violation: Violation): void {
  state.violations.push(violation);
  state.found?.(violation);
}

function seenAfter(after: number, what: string): Violation {
  return { index: null, after, what, request: "", answer: "" };
}

const line = z.looseObject({ limit: z.number().nullable(), spent: z.number(), reserved: z.number() });
const runForm = z.looseObject({ budget: z.record(z.string(), line) });
const reply = z.looseObject({ text: z.string() });

/** The gateway still serves, its budgets hold, the other run is as it was, and it has printed no bug. Then new runs are opened. */
async function look(state: State, site: Site, after: number): Promise<void> {
  const { gateway, names } = site;
  const prompt = `good ${after}`;
  const fresh = await gateway.openRun({ budget: { usd: 0.01 } });
  for (const model of ["sim/echo", "up/small"]) {
    const answer = await gateway.fetch("/query", { json: { prompt, model }, token: fresh.token });
    const text = await answer.text();
    const parsed = answer.ok ? reply.safeParse(JSON.parse(text)) : null;
    if (parsed?.data?.text !== prompt)
      report(
        state,
        seenAfter(
          after,
          `a good query to ${model} ${site.hasFiles ? "with" : "without"} R2 is answered ${answer.status} ${text}`,
        ),
      );
  }
  for (const { id } of [names.own, fresh]) {
    const answer = await gateway.fetch(`/runs/${id}`, { token: gateway.adminKey });
    const { budget } = runForm.parse(await answer.json());
    for (const [dimension, { limit, spent, reserved }] of Object.entries(budget)) {
      if (limit !== null && spent + reserved > limit) report(state, seenAfter(after, `${dimension} is over its limit`));
    }
  }
  const otherNow = await lookAt(gateway, names.other);
  if (otherNow !== site.otherBefore)
    report(state, seenAfter(after, `another run was changed: ${difference(site.otherBefore, otherNow)}`));
  for (const fault of await courseFaults(site, { seed: state.seed, after })) {
    report(state, seenAfter(after, `${fault} (${site.hasFiles ? "with" : "without"} R2)`));
  }
  if (state.place.reached() > 0) report(state, seenAfter(after, "a redirect was followed"));
  const printed = gateway.output();
  const before = state.outputs.get(site) ?? "";
  const added = printed.startsWith(before) ? printed.slice(before.length) : printed;
  state.outputs.set(site, printed);
  for (const bug of added.split("\n").filter((text) => BUG.test(text)))
    report(state, seenAfter(after, `the gateway printed: ${bug}`));
  await renew(site);
}

/** Lines of the gateway's output that report an unexpected error. workerd itself refuses CONNECT and broken frames. */
const BUG =
  /^(?!.*(?:does not export a connect\(\) function|WebSocket protocol error)).*(?:request \S+ failed:|[Uu]ncaught|unhandled|TypeError|RangeError|ReferenceError|SyntaxError|fatal)/;

/** Where two texts begin to differ. */
function difference(before: string, now: string): string {
  const at = [...before].findIndex((letter, place) => letter !== now[place]);
  const from = Math.max(0, at - 100);
  return `${before.slice(from, from + 400)} ≠ ${now.slice(from, from + 400)}`;
}
