/** Downloads the answers of a batch that has ended and writes them in the order of the input. */
import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { asCsvLine, asJsonLine, asTextLine, CSV_HEADER, errorText, missingLine, readAnswer } from "./answer.mjs";
import { Answers } from "./answers.mjs";
import { Causes } from "./causes.mjs";
import { textOf } from "../text/json.mjs";
import { FileSink } from "./sink.mjs";

/** @typedef {import("./setting.mjs").Setting["format"]} Format */
/** `strangers`: answers to no line of the input. @typedef {{ completed: number, failed: number, strangers: number, causes: Causes }} Delivery */

/**
 * @param {Pick<import("./server/api.mjs").Api, "content">} api
 * @param {import("./server/api.mjs").Document} document The batch.
 * @param {{ ids: readonly string[], output: string, format: Format, folder: string, signal: AbortSignal }} options
 *   `folder`: for downloads.
 * @returns {Promise<Delivery>}
 */
export async function deliver(api, document, { ids, output, format, folder, signal }) {
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

/**
 * @param {AsyncIterable<Buffer>} chunks
 * @param {string} path
 */
async function store(chunks, path) {
  const sink = await FileSink.create(path);
  try {
    for await (const chunk of chunks) await sink.write(chunk);
  } catch (error) {
    await sink.abandon();
    throw error;
  }
  await sink.close();
}

/**
 * @param {Answers} answers
 * @param {{ ids: readonly string[], output: string, format: Format, signal: AbortSignal }} options
 */
async function write(answers, { ids, output, format, signal }) {
  const draft = `${output}.${process.pid}.tmp`;
  const sink = await FileSink.create(draft);
  /** @type {Delivery} */
  const delivery = { completed: 0, failed: 0, strangers: answers.strangers, causes: new Causes() };
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

/**
 * @param {Format} format
 * @param {{ id: string, line: Buffer | null, answer: import("./answer.mjs").Answer }} about
 */
function written(format, { id, line, answer }) {
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
