/** Uploads whose parts have any size, and are named in any order, twice, not at all, or of another run. */
import { createHash } from "node:crypto";
import { z } from "zod";
import type { Random } from "../../../bench/adversary/random.ts";
import type { Site } from "../place.ts";
import { expected, idIn, openCourseRun, refusedFault, shuffled, type CourseRun } from "./course.ts";

const SIZES = [1, 1, 5, 1_000, 70_000] as const;
/** More than the smallest part of a multipart upload of R2. */
const LARGE_BYTES = 5 * 1024 * 1024 + 1;

const completed = z.looseObject({ status: z.literal("completed"), file: z.looseObject({ id: z.string() }) });
const fileList = z.looseObject({ data: z.array(z.looseObject({ id: z.string() })) });

type Part = { id: string; bytes: Buffer };
type Upload = { run: CourseRun; path: string; parts: readonly Part[]; sizeBytes: number };

export async function uploads(site: Site, random: Random): Promise<string[]> {
  const run = await openCourseRun(site);
  const count = random.integer(1, 4);
  const pieces = Array.from({ length: count }, (_, at) =>
    Buffer.alloc(random.chance(0.1) ? LARGE_BYTES : random.pick(SIZES), 97 + at),
  );
  if (random.chance(0.2)) pieces.push(Buffer.alloc(0));
  const sizeBytes = pieces.reduce((sum, { length }) => sum + length, 0);
  const json = { filename: "a.bin", purpose: "user_data", bytes: sizeBytes, mime_type: "text/plain" };
  const created = await run.ask("/v1/uploads", { json });
  if (created.status !== 200) return expected("POST /v1/uploads", 200, created);
  const path = `/v1/uploads/${idIn(created)}`;
  const sent = await Promise.all(
    pieces.map(async (bytes) => ({
      bytes,
      answer: await run.ask(`${path}/parts`, { method: "POST", body: formWith(bytes) }),
    })),
  );
  const refusedParts = sent.flatMap(({ answer }) => expected("a part", 200, answer));
  if (refusedParts.length > 0) return refusedParts;
  const upload = { run, path, sizeBytes, parts: sent.map(({ bytes, answer }) => ({ bytes, id: idIn(answer) })) };
  const foreign = site.names.other.things.files?.part ?? "part_none";
  return [
    ...(await wrongCompletions(upload, foreign, random)),
    ...(random.chance(0.2) ? await cancelled(upload) : await rightCompletion(upload, random)),
  ];
}

function formWith(bytes: Buffer): FormData {
  const form = new FormData();
  form.set("data", new Blob([new Uint8Array(bytes)]), "part");
  return form;
}

/** None of these makes a file, or changes the upload. */
async function wrongCompletions({ run, path, parts }: Upload, foreign: string, random: Random): Promise<string[]> {
  const ids = parts.map(({ id }) => id);
  const [first = ""] = ids;
  const wrong = [
    { part_ids: [...ids, first] },
    { part_ids: [] },
    { part_ids: [...ids.slice(1), foreign] },
    { part_ids: [...ids, "part_none"] },
    { part_ids: ids, md5: "0".repeat(32) },
    { part_ids: ids, md5: "" },
    { part_ids: first },
  ];
  const faults: string[] = [];
  for (const json of shuffled(wrong, random).slice(0, random.integer(0, 3))) {
    faults.push(
      ...refusedFault(`completing with ${JSON.stringify(json)}`, await run.ask(`${path}/complete`, { json })),
    );
  }
  const list = fileList.safeParse((await run.ask("/v1/files")).json);
  if (list.data?.data.length !== 0) faults.push("a refused completion has made a file");
  return faults;
}

/** In any order of the parts, and asked for several times at once, one file has their bytes. */
async function rightCompletion({ run, path, parts, sizeBytes }: Upload, random: Random): Promise<string[]> {
  const ordered = shuffled(parts, random);
  const bytes = Buffer.concat(ordered.map((part) => part.bytes));
  const digest = createHash("md5").update(bytes).digest("hex");
  const md5 = random.pick([null, digest, digest.toUpperCase()]);
  const json = { part_ids: ordered.map(({ id }) => id), md5 };
  const times = random.integer(1, 3);
  const answers = await Promise.all(Array.from({ length: times }, () => run.ask(`${path}/complete`, { json })));
  const faults = answers.flatMap((answer) => expected(`completing ${times} times at once`, 200, answer));
  const files = new Set(answers.map((answer) => completed.safeParse(answer.json).data?.file.id ?? ""));
  const [file = ""] = files;
  if (files.size !== 1 || file === "") faults.push(`one upload became the files ${[...files].join(", ")}`);
  const content = await run.ask(`/v1/files/${file}/content`);
  if (content.text !== bytes.toString("latin1"))
    faults.push(`a file of ${sizeBytes} bytes has other ${content.text.length}`);
  const list = fileList.safeParse((await run.ask("/v1/files")).json).data?.data ?? [];
  if (list.length !== 1) faults.push(`one upload became ${list.length} files`);
  faults.push(...expected("completing again", 200, await run.ask(`${path}/complete`, { json })));
  faults.push(...refusedFault("cancelling a completed upload", await run.ask(`${path}/cancel`, { method: "POST" })));
  const late = await run.ask(`${path}/parts`, { method: "POST", body: formWith(Buffer.from("late")) });
  return [...faults, ...refusedFault("a part of a completed upload", late)];
}

async function cancelled({ run, path, parts }: Upload): Promise<string[]> {
  const json = { part_ids: parts.map(({ id }) => id) };
  return [
    ...expected("cancelling", 200, await run.ask(`${path}/cancel`, { method: "POST" })),
    ...refusedFault("completing a cancelled upload", await run.ask(`${path}/complete`, { json })),
    ...expected("cancelling again", 200, await run.ask(`${path}/cancel`, { method: "POST" })),
  ];
}
