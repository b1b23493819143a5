/**
 * What is behind the binding of Workers AI: the service that workerd's own module of the binding calls. Forms, prices and errors are those of
 * developers.cloudflare.com/workers-ai (models, platform/pricing, platform/errors) and of the tests of workerd's module.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { z } from "zod";

/** Neurons per million tokens, of Cloudflare's price list of August 2026. It bills neurons: 1,000 cost $0.011. */
const NEURONS: Readonly<Record<string, { input: number; output: number }>> = {
  "@cf/meta/llama-3.3-70b-instruct-fp8-fast": { input: 26_668, output: 204_805 },
  "@cf/meta/llama-3.1-8b-instruct-fp8-fast": { input: 4_119, output: 34_868 },
  "@cf/openai/gpt-oss-120b": { input: 31_818, output: 68_182 },
  "@cf/baai/bge-base-en-v1.5": { input: 6_058, output: 0 },
  "@cf/baai/bge-m3": { input: 1_075, output: 0 },
};
const NANO_USD_PER_NEURON = 11_000;
/**
 * Embeddings whose answers state their tokens. Cloudflare's schema of these answers has no usage; users of the binding report it nevertheless,
 * since 2026. So the service has a model of each sort.
 */
const STATES_USAGE = new Set(["@cf/baai/bge-base-en-v1.5"]);
/** Models that answer in OpenAI's form. */
const OPENAI_FORM = new Set(["@cf/openai/gpt-oss-120b"]);
/** Tokens of each prompt beside its words. */
const TEMPLATE = 7;
/** Tokens at the begin and the end of each text that is embedded. */
const EMBEDDING_MARKS = 2;

type Failure = { status: number; body: unknown };

/** By the last word of a prompt; the first request with that prompt fails so, or all that name `always`. */
const FAILURES: Readonly<Record<string, Failure>> = {
  capacity: {
    status: 429,
    body: {
      internalCode: 3040,
      name: "AiError",
      message: "AiError: Capacity temporarily exceeded, please try again.",
      description: "Capacity temporarily exceeded, please try again.",
    },
  },
  rate: { status: 429, body: { success: false, result: [], errors: [{ code: 2003, message: "Rate limited" }] } },
  allocation: {
    status: 429,
    body: {
      internalCode: 3036,
      name: "AiError",
      message: "AiError: you have used up your daily free allocation of 10,000 neurons",
      description:
        "You have used up your daily free allocation of 10,000 neurons. Please upgrade to Cloudflare's Workers Paid plan if you would like to continue usage.",
    },
  },
  long: {
    status: 413,
    body: {
      internalCode: 5021,
      name: "AiError",
      message: "AiError",
      description:
        "The estimated number of input and maximum output tokens (400) exceeded this model context window limit (128).",
    },
  },
};

const call = z.object({
  inputs: z.looseObject({
    messages: z.array(z.looseObject({ role: z.string(), content: z.string() })).optional(),
    text: z.array(z.string()).optional(),
    stream: z.boolean().optional(),
    max_tokens: z.int().optional(),
    tools: z.array(z.unknown()).optional(),
    response_format: z.looseObject({ type: z.string(), json_schema: z.unknown() }).optional(),
  }),
  options: z.looseObject({ gateway: z.object({ id: z.string() }).optional() }),
});
export type Ran = z.infer<typeof call> & { model: string; path: string };

const wordsOf = (text: string): string[] => text.split(/\s+/).filter((word) => word !== "");

export class AiService {
  /** Calls that were answered or refused, in their order. */
  readonly ran: Ran[] = [];
  /** What its answers cost by the price list. */
  neurons = 0;
  /** The same in nano-USD. */
  nanoUsd = 0;
  address = "";
  readonly #failed = new Set<string>();

  async start(): Promise<() => Promise<void>> {
    const server = createServer(
      (req, res) => void this.#answer(req, res).catch((error: unknown) => res.writeHead(418).end(String(error))),
    );
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const at = server.address();
    if (at === null || typeof at === "string") throw new Error("the service has no port");
    this.address = `127.0.0.1:${at.port}`;
    return () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      });
  }

  async #answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of req) pieces.push(Buffer.from(piece));
    const { inputs, options } = call.parse(JSON.parse(Buffer.concat(pieces).toString()));
    const model = String(req.headers["cf-consn-model-id"]);
    this.ran.push({ inputs, options, model, path: (req.url ?? "").split("?")[0] ?? "" });
    const price = NEURONS[model];
    if (price === undefined) {
      const description = `No such model ${model} or task`;
      return sendJson(res, 400, { internalCode: 5007, name: "AiError", message: description, description });
    }
    if (inputs.text !== undefined) {
      const read = inputs.text.reduce((sum, text) => sum + wordsOf(text).length + EMBEDDING_MARKS, 0);
      this.#bill(read, 0, price);
      return sendJson(res, 200, {
        shape: [inputs.text.length, 2],
        data: inputs.text.map((text) => [text.length, 0.5]),
        ...(STATES_USAGE.has(model) ? { usage: { prompt_tokens: read, total_tokens: read } } : {}),
      });
    }
    const prompt = inputs.messages?.at(-1)?.content ?? "";
    const failure = this.#failureOf(prompt);
    if (failure !== null) return sendJson(res, failure.status, failure.body);
    const said = wordsOf(prompt).toReversed().slice(0, inputs.max_tokens);
    const prompts = (inputs.messages ?? []).reduce((sum, { content }) => sum + wordsOf(content).length, TEMPLATE);
    const usage = { prompt_tokens: prompts, completion_tokens: said.length, total_tokens: prompts + said.length };
    this.#bill(prompts, said.length, price);
    const answer = {
      said,
      usage,
      model,
      isTool: inputs.tools !== undefined,
      isJson: inputs.response_format !== undefined,
    };
    if (inputs.stream === true) return sendEvents(res, answer);
    sendJson(res, 200, OPENAI_FORM.has(model) ? completion(answer) : older(answer));
  }

  /** Each call is billed up to a whole nano-USD. */
  #bill(read: number, written: number, neurons: { input: number; output: number }): void {
    const millionths = read * neurons.input + written * neurons.output;
    this.neurons += millionths / 1e6;
    this.nanoUsd += Math.ceil((millionths * NANO_USD_PER_NEURON) / 1e6);
  }

  #failureOf(prompt: string): Failure | null {
    const words = wordsOf(prompt);
    const failure = FAILURES[words.at(-1) ?? ""];
    if (failure === undefined || (this.#failed.has(prompt) && !words.includes("always"))) return null;
    this.#failed.add(prompt);
    return failure;
  }
}

type Answer = { said: string[]; usage: object; model: string; isTool: boolean; isJson: boolean };

function older({ said, usage, isTool, isJson }: Answer): unknown {
  if (isTool) return { response: null, tool_calls: [{ name: "look", arguments: { word: said[0] } }], usage };
  return { response: isJson ? { words: said.length } : said.join(" "), tool_calls: [], usage };
}

function completion({ said, usage, model }: Answer): unknown {
  const choice = { index: 0, message: { role: "assistant", content: said.join(" ") }, finish_reason: "stop" };
  return { id: "chatcmpl-1", object: "chat.completion", created: 1, model, choices: [choice], usage };
}

function sendJson(res: ServerResponse, status: number, body: unknown): void {
  res.writeHead(status, { "content-type": "application/json", "cf-ai-req-id": "req-1" }).end(JSON.stringify(body));
}

function sendEvents(res: ServerResponse, { said, usage, model, isTool }: Answer): void {
  res.writeHead(200, { "content-type": "text/event-stream" });
  const event = (data: unknown): unknown => res.write(`data: ${JSON.stringify(data)}\n\n`);
  const texts = said.map((word, at) => (at === 0 ? word : ` ${word}`));
  if (OPENAI_FORM.has(model)) {
    const chunk = (fields: object): object => ({
      id: "c",
      object: "chat.completion.chunk",
      created: 1,
      model,
      ...fields,
    });
    for (const content of texts) event(chunk({ choices: [{ index: 0, delta: { content }, finish_reason: null }] }));
    event(chunk({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }));
    event(chunk({ choices: [], usage }));
  } else {
    if (isTool) event({ response: "", tool_calls: [{ name: "look", arguments: { word: said[0] } }], p: "ab" });
    else for (const response of texts) event({ response, p: "abdefghij" });
    event({ response: "", usage });
  }
  res.end(said.includes("broken") ? "" : "data: [DONE]\n\n");
}
