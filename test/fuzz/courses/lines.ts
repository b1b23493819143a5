/** Files of batch requests as editors and systems write them: byte order marks, CRLF, blank lines, no end; and broken ones. */
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { Random } from "../../../bench/adversary/random.ts";
import type { Site } from "../place.ts";
import { expected, idIn, openCourseRun, type CourseRun } from "./course.ts";

const POLL_MS = 100;
const POLLS_MAX = 900;

const batchForm = z.looseObject({
  status: z.string(),
  output_file_id: z.string().nullish(),
  error_file_id: z.string().nullish(),
  errors: z.looseObject({ data: z.array(z.looseObject({ line: z.int().nullish() })) }).nullish(),
});
type Batch = z.infer<typeof batchForm>;

const outputLine = z.looseObject({
  custom_id: z.string(),
  response: z.looseObject({
    body: z.looseObject({ choices: z.array(z.looseObject({ message: z.looseObject({ content: z.string() }) })) }),
  }),
});

/** Contents with what some readers take for the end of a line. */
const TEXTS = [
  "one",
  "two\u2028words",
  "a\u0085b",
  "a\nb",
  "\ufeff",
  "ein größeres Wort",
  "🏴‍☠️",
  "x".repeat(3_000),
] as const;

const requestOf = (id: string, content: string) => ({
  custom_id: id,
  method: "POST",
  url: "/v1/chat/completions",
  body: { model: "sim/echo", messages: [{ role: "user", content }] },
});

type Drawn = { file: string; asked: ReadonlyMap<string, string>; badLine: number | null };

function drawFile(random: Random): Drawn {
  const asked = new Map(Array.from({ length: random.integer(1, 8) }, (_, at) => [`id-${at}`, random.pick(TEXTS)]));
  const lines = [...asked].map(([id, content]) => JSON.stringify(requestOf(id, content)));
  const bad = random.chance(0.4) ? random.pick(BROKEN) : null;
  // The first line is checked at the upload, with another answer.
  const at = random.integer(1, lines.length);
  if (bad !== null) lines.splice(at, 0, bad);
  const spaced = lines.map((line) => (random.chance(0.15) ? `${line}${" ".repeat(random.integer(1, 3))}` : line));
  const blanks = spaced.map(() => (random.chance(0.15) ? random.pick(["\n", "\r\n", " \n", "\t\r\n"]) : ""));
  const ending = random.pick(["\n", "\r\n"]);
  const text = spaced.map((line, place) => (blanks[place] ?? "") + line).join(ending);
  const file = (random.chance(0.3) ? "\ufeff" : "") + text + (random.chance(0.5) ? ending : "");
  const badLine = bad === null ? null : file.slice(0, file.indexOf(bad)).split("\n").length;
  return { file, asked, badLine };
}

/** Lines for which a batch fails. */
const BROKEN = [
  '{"custom_id":"broken"',
  '{"custom_id":"other","method":"POST","url":"/v1/embeddings","body":{"model":"sim/echo","input":"a"}}',
  '{"custom_id":"get","method":"GET","url":"/v1/chat/completions","body":{"model":"sim/echo","messages":[]}}',
  '{"custom_id":"none","method":"POST","url":"/v1/chat/completions"}',
  '["an array"]',
  '\ufeff{"custom_id":"mark","method":"POST","url":"/v1/chat/completions","body":{}}',
  // A name that an earlier line has.
  JSON.stringify(requestOf("id-0", "again")),
  "null",
] as const;

export async function lines(site: Site, random: Random): Promise<string[]> {
  const run = await openCourseRun(site);
  const { file, asked, badLine } = drawFile(random);
  const form = new FormData();
  const purposeFirst = random.chance(0.5);
  if (purposeFirst) form.set("purpose", "batch");
  form.set("file", new Blob([file]), "lines.jsonl");
  if (!purposeFirst) form.set("purpose", "batch");
  const stored = await run.ask("/v1/files", { method: "POST", body: form });
  if (stored.status !== 200) return expected(`a file that begins ${JSON.stringify(file.slice(0, 200))}`, 200, stored);
  const json = { input_file_id: idIn(stored), endpoint: "/v1/chat/completions", completion_window: "24h" };
  const created = await run.ask("/v1/batches", { json });
  if (created.status !== 200) return expected("POST /v1/batches", 200, created);
  const batch = await ended(run, `/v1/batches/${idIn(created)}`);
  if (batch === null) return ["a batch does not end"];
  return badLine === null ? await answersFaults(run, batch, asked) : failureFaults(batch, badLine, file);
}

async function ended(run: CourseRun, path: string): Promise<Batch | null> {
  for (let polls = 0; polls < POLLS_MAX; polls += 1) {
    const batch = batchForm.parse((await run.ask(path)).json);
    if (["completed", "failed", "expired", "cancelled"].includes(batch.status)) return batch;
    await sleep(POLL_MS);
  }
  return null;
}

async function answersFaults(run: CourseRun, batch: Batch, asked: ReadonlyMap<string, string>): Promise<string[]> {
  if (batch.status !== "completed") return [`a batch of good lines is ${JSON.stringify(batch).slice(0, 400)}`];
  const text = batch.output_file_id == null ? "" : (await run.ask(`/v1/files/${batch.output_file_id}/content`)).text;
  const answers = text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => outputLine.parse(JSON.parse(line)));
  const ids = answers.map(({ custom_id: id }) => id);
  const faults = answers
    .filter(({ custom_id: id, response }) => response.body.choices[0]?.message.content !== asked.get(id))
    .map(({ custom_id: id }) => `the line ${id} has the answer of another`);
  if (ids.length !== asked.size || new Set(ids).size !== asked.size)
    faults.push(`${asked.size} lines have ${ids.length} answers`);
  return faults;
}

function failureFaults(batch: Batch, badLine: number, file: string): string[] {
  const named = batch.errors?.data.map(({ line }) => line) ?? [];
  if (batch.status === "failed" && named.includes(badLine)) return [];
  return [
    `a batch whose line ${badLine} is broken is ${batch.status} and names ${named.join(",")}: ${JSON.stringify(file).slice(0, 600)}`,
  ];
}
