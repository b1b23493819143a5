/** A batch's input in R2, read line by line from any line on; only one page of it is in memory. */
import { LineSplitter, type Line } from "../../src/batch/lines.ts";
import { pageSource } from "../../src/files/r2-read.ts";
import { BATCH_LINE_BYTES_MAX } from "../../src/limits.ts";
import { fileKey } from "../../src/objects/address.ts";
import type { Job } from "./store.ts";

/** Lines from the one that begins at `from` on. Throws if the file is gone. */
export async function* linesFrom(
  bucket: R2Bucket,
  { runId, batch, inputBytes }: Job,
  from: { start: number; number: number },
): AsyncGenerator<Line> {
  const key = fileKey(runId, batch.request.inputFileId);
  const source = pageSource(bucket, { key, sizeBytes: inputBytes, offset: from.start });
  const splitter = new LineSplitter(BATCH_LINE_BYTES_MAX, from);
  for (;;) {
    const read = await source.read();
    if (read.kind === "fault") throw new Error(`the input file of ${batch.id} is gone from R2`);
    if (read.kind === "end") break;
    yield* splitter.push(read.bytes);
  }
  const last = splitter.finish();
  if (last !== null) yield last;
}
