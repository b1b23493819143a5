/** Compares a batch's output with its input: every line once, with its own answer, and correct totals. */
import type { Batch } from "openai/resources/batches";
import { z } from "zod";
import { customIdOf, textOf, tokensOf } from "./tokens.ts";
import type { BatchRun } from "./world.ts";

const answer = z.object({
  choices: z.array(z.object({ message: z.object({ content: z.string() }) })).length(1),
  usage: z.object({
    prompt_tokens: z.int(),
    completion_tokens: z.int(),
    prompt_tokens_details: z.object({ cached_tokens: z.int() }),
    completion_tokens_details: z.object({ reasoning_tokens: z.int() }),
  }),
});
const resultLine = z.object({
  custom_id: z.string(),
  response: z.object({ status_code: z.int(), body: z.unknown() }).nullable(),
  error: z.object({ code: z.string() }).nullable(),
});

type Sums = { input: number; output: number; cached: number; reasoning: number };

/** `faults` lists every violation; a correct batch has none. */
export type Audit = { output: number; error: number; faults: string[] };

/** Most faults that are reported for one batch. */
const FAULTS_MAX = 10;

/** Reads both files of an ended batch of `lines` lines. */
export async function audit(run: BatchRun, batch: Batch, lines: number): Promise<Audit> {
  const read = new Read(lines);
  if (batch.status !== "completed") read.fault(`the batch ended as ${batch.status}: ${JSON.stringify(batch.errors)}`);
  const output = await read.file(run, batch.output_file_id, (text) => read.outputLine(text));
  const error = await read.file(run, batch.error_file_id, (text) => read.errorLine(text));
  read.end(batch, { output, error });
  return { output, error, faults: read.faults };
}

class Read {
  readonly faults: string[] = [];
  readonly #lines: number;
  /** How often each line of the input has a result. */
  readonly #times: Uint8Array;
  readonly #sums: Sums = { input: 0, output: 0, cached: 0, reasoning: 0 };

  constructor(lines: number) {
    this.#lines = lines;
    this.#times = new Uint8Array(lines);
  }

  fault(text: string): void {
    if (this.faults.length < FAULTS_MAX) this.faults.push(text);
  }

  /** Streams a file through `take`; how many lines it has. */
  async file(run: BatchRun, id: string | null | undefined, take: (text: string) => void): Promise<number> {
    if (id === null || id === undefined) return 0;
    const { body } = await run.openai.files.content(id);
    if (body === null) throw new Error(`the file ${id} has no content`);
    let count = 0;
    let rest = "";
    for await (const text of body.pipeThrough(new TextDecoderStream())) {
      const pieces = (rest + text).split("\n");
      rest = pieces.pop() ?? "";
      for (const piece of pieces) take(piece);
      count += pieces.length;
    }
    if (rest !== "") this.fault(`the file ${id} ends without a line end`);
    return count;
  }

  outputLine(text: string): void {
    const { custom_id, response, error } = resultLine.parse(JSON.parse(text));
    const index = this.#count(custom_id);
    if (response?.status_code !== 200 || error !== null) this.fault(`${custom_id} is no result: ${text.slice(0, 200)}`);
    const { choices, usage } = answer.parse(response?.body);
    const actual = choices[0]?.message.content ?? "";
    if (actual !== textOf(index)) this.fault(`${custom_id} has another's answer: ${actual.slice(0, 80)}`);
    this.#sums.input += usage.prompt_tokens;
    this.#sums.output += usage.completion_tokens;
    this.#sums.cached += usage.prompt_tokens_details.cached_tokens;
    this.#sums.reasoning += usage.completion_tokens_details.reasoning_tokens;
  }

  errorLine(text: string): void {
    const { custom_id } = resultLine.parse(JSON.parse(text));
    this.#count(custom_id);
    this.fault(`${custom_id} failed: ${text.slice(0, 300)}`);
  }

  /** Compares the totals of the files with the batch document and with the provider's bill. */
  end(batch: Batch, { output, error }: { output: number; error: number }): void {
    const missing = this.#times.filter((times) => times === 0).length;
    const twice = this.#times.filter((times) => times > 1).length;
    if (missing + twice > 0) this.fault(`${missing} lines have no result, ${twice} have several`);
    if (output + error !== this.#lines) this.fault(`${output} + ${error} results for ${this.#lines} lines`);
    const counted = { total: this.#lines, completed: output, failed: error };
    const counts = batch.request_counts;
    if (counts?.total !== counted.total || counts.completed !== output || counts.failed !== error)
      this.fault(`the batch counts ${JSON.stringify(counts)}, its files ${JSON.stringify(counted)}`);
    const { usage } = batch;
    const actual: Sums = {
      input: usage?.input_tokens ?? -1,
      output: usage?.output_tokens ?? -1,
      cached: usage?.input_tokens_details.cached_tokens ?? -1,
      reasoning: usage?.output_tokens_details.reasoning_tokens ?? -1,
    };
    for (const [whose, sums] of [
      ["batch", actual],
      ["provider", billed(this.#lines)],
    ] as const)
      if (JSON.stringify(sums) !== JSON.stringify(this.#sums))
        this.fault(
          `usage: the ${whose} has ${JSON.stringify(sums)}, the lines add up to ${JSON.stringify(this.#sums)}`,
        );
  }

  /** The index of a line that has a result. */
  #count(customId: string): number {
    const index = Number(/^line-(\d+)$/.exec(customId)?.[1] ?? Number.NaN);
    const times = this.#times[index];
    if (times === undefined || customId !== customIdOf(index)) this.fault(`no line is called ${customId.slice(0, 80)}`);
    else this.#times[index] = Math.min(times + 1, 255);
    return index;
  }
}

/** What the provider bills for one answer to each line. */
function billed(lines: number): Sums {
  const sums: Sums = { input: 0, output: 0, cached: 0, reasoning: 0 };
  for (let index = 0; index < lines; index++) {
    const { prompt, completion, cached, reasoning } = tokensOf(index);
    sums.input += prompt;
    sums.output += completion;
    sums.cached += cached;
    sums.reasoning += reasoning;
  }
  return sums;
}
