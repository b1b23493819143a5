/** Downloads the answers of a batch that has ended and writes them in the order of the input. */
import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import {
  asCsvLine,
  asJsonLine,
  asTextLine,
  CSV_HEADER,
  errorText,
  missingLine,
  readAnswer,
  type Answer,
} from "./answer.ts";
import { Answers } from "./answers.ts";
import { Causes } from "./causes.ts";
import { textOf } from "../text/json.ts";
import { FileSink } from "./sink.ts";
import type { Api, Document } from "./server/api.ts";
import type { Setting } from "./setting.ts";

export type Format = Setting["format"];
/** `strangers`: answers to no line of the input. */
export type Delivery = { completed: number; failed: number; strangers: number; causes: Causes };

/**
 * @param document The batch.
 * @param options `folder`: for downloads.
 */
export async function deliver(
  api: Pick<Api, "content">,
  document: Document,
  {
    ids,
    output,
    format,
    folder,
    signal,
  }: { ids: readonly string[]; output: string; format: Format; folder: string; signal: AbortSignal },
): Promise<Delivery> {
  const answers = new Answers(ids);
  try {
    for (const name of ["output_file_id", "error_file_id"]) {
      const id = textOf(document, name);
      // Some servers return "" if there is no such file.
      if (id === null || id === "") continue;
      const path = join(folder, `${name}.jsonl`);
      await api.content(id, (chunks) => store(chunks, path));
      await answers.add(path);
    }
    return await write(answers, { ids, output, format, signal });
  } finally {
    await answers.close();
  }
}

async function store(chunks: AsyncIterable<Buffer>, path: string) {
  const sink = await FileSink.create(path);
  try {
    for await (const chunk of chunks) await sink.write(chunk);
  } catch (error) {
    await sink.abandon();
    throw error;
  }
  await sink.close();
}

async function write(
  answers: Answers,
  { ids, output, format, signal }: { ids: readonly string[]; output: string; format: Format; signal: AbortSignal },
) {
  const draft = `${output}.${process.pid}.tmp`;
  const sink = await FileSink.create(draft);
  const delivery: Delivery = { completed: 0, failed: 0, strangers: answers.strangers, causes: new Causes() };
  try {
    if (format === "csv") await sink.write(Buffer.from(CSV_HEADER));
    for (const [place, id] of ids.entries()) {
      signal.throwIfAborted();
      const line = await answers.line(place);
      const answer = readAnswer(line);
      if (answer.error === null) delivery.completed += 1;
      else {
        delivery.failed += 1;
        delivery.causes.add(id, errorText(answer.error));
      }
      await sink.write(written(format, { id, line, answer }));
    }
  } catch (error) {
    await sink.abandon();
    await rm(draft, { force: true });
    throw error;
  }
  await sink.close();
  await rename(draft, output);
  return delivery;
}

function written(format: Format, { id, line, answer }: { id: string; line: Buffer | null; answer: Answer }) {
  switch (format) {
    case "raw":
      return line === null ? missingLine(id) : Buffer.concat([line, LF]);
    case "csv":
      return Buffer.from(asCsvLine(id, answer));
    case "text":
      return Buffer.from(asTextLine(answer));
    case "jsonl":
      return Buffer.from(asJsonLine(id, answer));
  }
}

const LF = Buffer.from("\n");
