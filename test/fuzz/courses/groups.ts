/** Groups of calls that fail, wait and go through their provider's batches, while they are cancelled, confirmed, paused and retried. */
import { z } from "zod";
import type { Random } from "../../../bench/adversary/random.ts";
import type { Site } from "../place.ts";
import { answerTo, idIn, openCourseRun, refusedFault, type CourseAnswer, type CourseRun } from "./course.ts";

const MODELS = [
  "sim/echo",
  "up/small",
  "up/delay/200",
  "shaky/status/500",
  "shaky/fault/truncated",
  "batched/m",
] as const;
const HOUR_MS = 3_600_000;
const WAIT_MS = 1_000;
/** Looks of WAIT_MS until a group must have ended. */
const LOOKS_MAX = 60;

const groupForm = z.looseObject({ status: z.string() });
const runForm = z.looseObject({
  budget: z.looseObject({ usd: z.looseObject({ limit: z.number(), spent: z.number(), reserved: z.number() }) }),
});
const endedForm = z.looseObject({
  status: z.string(),
  results: z.array(z.string().nullable()),
  errors: z.array(z.unknown()),
  items: z.array(z.unknown()),
});

export async function groups(site: Site, random: Random): Promise<string[]> {
  const run = await openCourseRun(site, random.chance(0.3) ? { confirm_over: { calls: 2 } } : {});
  const prompts = Array.from({ length: random.integer(1, 12) }, (_, at) => `group ${at}`);
  const items = prompts.map((prompt) => ({ prompt, model: random.pick(MODELS) }));
  const tier = random.chance(0.3) ? { service_tier: "batch", deadline_ms: HOUR_MS } : {};
  const opened = await run.ask("/batch", { json: { items, ...tier }, headers: { prefer: "respond-async" } });
  if (opened.status !== 202) return [`/batch is answered ${opened.status}: ${opened.text.slice(0, 300)}`];
  const places = [`/groups/${idIn(opened)}`];
  const faults: string[] = [];
  for (let steps = random.integer(1, 8); steps > 0; steps -= 1) {
    const place = random.pick(places);
    const answer = await step(site, run, { place, random, count: items.length });
    faults.push(...answer.faults);
    if (answer.opened !== null) places.push(answer.opened);
  }
  await patched(site, run, { paused: false });
  for (const place of places) faults.push(...(await endFaults(run, place, items.length)));
  const after = await run.ask("/run");
  const { limit, spent, reserved } = runForm.parse(after.json).budget.usd;
  if (reserved !== 0 || spent > limit)
    faults.push(`after all groups, spent ${spent} and reserved ${reserved} of ${limit}`);
  return faults;
}

type Step = { faults: string[]; opened: string | null };
type About = { place: string; random: Random; count: number };

async function step(site: Site, run: CourseRun, { place, random, count }: About): Promise<Step> {
  const slot = `${place}/slots/${random.integer(0, count)}`;
  const kind = random.weighted([
    ["cancel", 10],
    ["cancel slot", 20],
    ["confirm", 10],
    ["retry", 20],
    ["pause", 10],
    ["read", 15],
    ["stranger", 15],
  ]);
  const of = async (pending: Promise<CourseAnswer>): Promise<Step> => {
    const { status, text } = await pending;
    const faults = status >= 500 ? [`${kind} of ${place} is answered ${status}: ${text.slice(0, 300)}`] : [];
    return { faults, opened: null };
  };
  if (kind === "cancel") return await of(run.ask(place, { method: "DELETE" }));
  if (kind === "cancel slot") return await of(run.ask(slot, { method: "DELETE" }));
  if (kind === "confirm") return await of(run.ask(`${place}/confirm`, { method: "POST" }));
  if (kind === "pause") return await of(patched(site, run, { paused: random.chance(0.5) }));
  if (kind === "read") return await of(run.ask(`${place}/results?after=${random.integer(-1, count)}&limit=2`));
  if (kind === "stranger") return { faults: await strangerFaults(site, place, random), opened: null };
  const retried = await run.ask(`${place}/retry`, { method: "POST", headers: { prefer: "respond-async" } });
  const id = idIn(retried);
  return {
    ...(await of(Promise.resolve(retried))),
    opened: retried.status === 202 && id !== "" ? `/groups/${id}` : null,
  };
}

/** Another run's token opens nothing of the group. */
async function strangerFaults({ gateway, names }: Site, place: string, random: Random): Promise<string[]> {
  const [path, method] = random.pick([
    [place, "GET"],
    [place, "DELETE"],
    [`${place}/results`, "GET"],
    [`${place}/slots/0`, "GET"],
    [`${place}/slots/0`, "DELETE"],
    [`${place}/confirm`, "POST"],
    [`${place}/retry`, "POST"],
    [`${place}/report`, "GET"],
    [place.replace("/groups/", "/dag/"), "GET"],
  ] as const);
  return refusedFault(
    `${method} ${path} of another run`,
    await answerTo(gateway.fetch(path, { method, token: names.own.token })),
  );
}

function patched({ gateway }: Site, { id }: CourseRun, json: Record<string, unknown>): Promise<CourseAnswer> {
  return answerTo(gateway.fetch(`/runs/${id}`, { method: "PATCH", token: gateway.adminKey, json }));
}

/** A group ends, and then has a result, an error or neither of each call, in place. */
async function endFaults(run: CourseRun, place: string, count: number): Promise<string[]> {
  for (let looks = 0; looks < LOOKS_MAX; looks += 1) {
    const answer = await run.ask(`${place}?wait_ms=${WAIT_MS}`);
    const { status } = groupForm.parse(answer.json);
    if (status === "awaiting_confirmation") await run.ask(`${place}/confirm`, { method: "POST" });
    else if (status !== "running" && status !== "paused") return shapeFaults(answer, count);
  }
  return [`${place} does not end: ${(await run.ask(place)).text.slice(0, 1_500)}`];
}

function shapeFaults({ json, text }: CourseAnswer, count: number): string[] {
  const { data } = endedForm.safeParse(json);
  if (data === undefined) return [`a group that has ended reads ${text.slice(0, 300)}`];
  const { results, errors, items } = data;
  const isWhole = [results, errors, items].every(({ length }) => length === count);
  const misplaced = results.findIndex((result, at) => errors[at] === null && result !== `group ${at}`);
  if (!isWhole) return [`${count} calls have ${results.length} results and ${errors.length} errors`];
  return misplaced < 0 ? [] : [`call ${misplaced} has the result ${results[misplaced]}`];
}
