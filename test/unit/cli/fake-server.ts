/** A server of batches in memory, of which a test says how it answers and when it fails. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { z } from "zod";

export type Request = { method: string; path: string; headers: IncomingMessage["headers"]; body: Buffer };

const inputLine = z.looseObject({ custom_id: z.string() });
export type InputLine = z.infer<typeof inputLine>;

/** A line of the output or error file; null = the batch has none for it. */
export type OutputLine = { file: "output" | "error"; line: unknown } | null;

export type FakePlan = {
  /** How each line of a batch ends; by default its prompt is echoed. */
  answer?: (line: InputLine, place: number) => OutputLine;
  /** Looks at a batch before it has ended. Default 0. */
  looks?: () => number;
  /** How the batch ends. Default completed. */
  ends?: { status: string; errors?: unknown[] };
  /** Answers instead of the server, where it returns true. */
  meddle?: (request: Request, reply: ServerResponse) => boolean;
  /** Whether the answer to a batch's creation is held back. */
  silent?: () => boolean;
  /** What `GET /budget` says was spent, at each look; left out = there is no such route, and no `GET /run`. */
  spentUsd?: () => number;
  /** What `GET /run` says is the run. Default run_1. */
  runId?: string;
};

type Batch = { key: string; body: unknown; looks: number; document: Record<string, unknown> };

export class FakeServer {
  readonly seen: Request[] = [];
  readonly files = new Map<string, Buffer>();
  readonly batches = new Map<string, Batch>();
  readonly #parts = new Map<string, Buffer>();
  readonly #plan: FakePlan;
  // A command that ends breaks off what it was sending.
  readonly #server = createServer((request, reply) => void this.#receive(request, reply).catch(() => reply.destroy()));
  url = "";

  private constructor(plan: FakePlan) {
    this.#plan = plan;
  }

  static async start(plan: FakePlan = {}): Promise<FakeServer> {
    const fake = new FakeServer(plan);
    fake.#server.listen(0, "127.0.0.1");
    await once(fake.#server, "listening");
    const address = fake.#server.address();
    if (address === null || typeof address === "string") throw new Error("the server has no port");
    fake.url = `http://127.0.0.1:${address.port}`;
    return fake;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  /** Requests of that kind so far. */
  count(method: string, path: RegExp): number {
    return this.seen.filter((one) => one.method === method && path.test(one.path)).length;
  }

  /** Lines of the only input that was uploaded. */
  get input(): InputLine[] {
    const [file] = this.files.values();
    return linesOf(file);
  }

  async #receive(message: IncomingMessage, reply: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of message) chunks.push(Buffer.from(z.instanceof(Uint8Array).parse(chunk)));
    const { method = "", url: path = "", headers } = message;
    const request = { method, path, headers, body: Buffer.concat(chunks) };
    this.seen.push(request);
    if (this.#plan.meddle?.(request, reply)) return;
    if (headers.authorization !== "Bearer token") {
      return send(reply, 401, { error: { message: "no such token \u001b[31m", code: "invalid_api_key" } });
    }
    this.#route(request, reply);
  }

  #route(request: Request, reply: ServerResponse): void {
    const { method, path } = request;
    const [, kind = "", id = "", action = ""] = /^\/v1\/(\w+)\/?([^/]*)\/?(\w*)$/.exec(path) ?? [];
    switch (`${method} ${kind} ${action}`) {
      case "POST files ":
        return send(reply, 200, this.#addFile(formFile(request, "file")));
      case "POST uploads ":
        return send(reply, 200, { id: "upload_1", status: "pending" });
      case "POST uploads parts": {
        const partId = `part_${this.#parts.size}`;
        this.#parts.set(partId, formFile(request, "data"));
        return send(reply, 200, { id: partId });
      }
      case "POST uploads complete": {
        const { part_ids } = z.object({ part_ids: z.array(z.string()) }).parse(jsonOf(request));
        const parts = part_ids.map((partId) => this.#parts.get(partId) ?? Buffer.alloc(0));
        return send(reply, 200, { id, file: this.#addFile(Buffer.concat(parts)) });
      }
      case "POST batches ": {
        const { document } = this.#create(request);
        return this.#plan.silent?.() === true ? undefined : send(reply, 200, document);
      }
      case "GET batches ":
        return this.#look(id, reply);
      case "POST batches cancel":
        return this.#cancel(id, reply);
      case "GET files content":
        return void reply.writeHead(200).end(this.files.get(id));
      default:
        if (this.#plan.spentUsd === undefined) return send(reply, 404, {});
        if (path === "/run") return send(reply, 200, { id: this.#plan.runId ?? "run_1" });
        return path === "/budget" ? send(reply, 200, { usd: { spent: this.#plan.spentUsd() } }) : send(reply, 404, {});
    }
  }

  #addFile(bytes: Buffer): { id: string } {
    const id = `file-${this.files.size + 1}`;
    this.files.set(id, bytes);
    return { id };
  }

  /** The same key finds the same batch, as the gateway does it. */
  #create(request: Request): Batch {
    const key = String(request.headers["idempotency-key"]);
    for (const batch of this.batches.values()) if (batch.key === key) return batch;
    const id = `batch_${this.batches.size + 1}`;
    const body = jsonOf(request);
    const document = { id, object: "batch", status: "in_progress", errors: null, request_counts: counts(0, 0, 0) };
    const batch = { key, body, looks: this.#plan.looks?.() ?? 0, document };
    this.batches.set(id, batch);
    return batch;
  }

  #look(id: string, reply: ServerResponse): void {
    const batch = this.batches.get(id);
    if (batch === undefined) return send(reply, 404, { error: { message: `No batch found with id '${id}'.` } });
    if (batch.looks > 0) batch.looks -= 1;
    else if (batch.document["status"] === "in_progress") this.#end(batch, this.#plan.ends ?? { status: "completed" });
    send(reply, 200, batch.document);
  }

  #cancel(id: string, reply: ServerResponse): void {
    const batch = this.batches.get(id);
    if (batch?.document["status"] !== "in_progress") {
      return send(reply, 409, { error: { message: "Cannot cancel a batch with status 'completed'." } });
    }
    this.#end(batch, { status: "cancelled" });
    send(reply, 200, { ...batch.document, status: "cancelling" });
  }

  #end(batch: Batch, { status, errors }: { status: string; errors?: unknown[] }): void {
    Object.assign(batch.document, { status });
    if (errors !== undefined) return void Object.assign(batch.document, { errors: { object: "list", data: errors } });
    const { input_file_id } = z.object({ input_file_id: z.string() }).parse(batch.body);
    const lines = linesOf(this.files.get(input_file_id));
    const answer = this.#plan.answer ?? echo;
    const ended = lines.map((line, place) => answer(line, place)).filter((line) => line !== null);
    // Last first: a server owes no order.
    const texts = (file: string) =>
      ended.filter((one) => one.file === file).map((one) => `${JSON.stringify(one.line)}\n`);
    const [output, error] = [texts("output").toReversed(), texts("error").toReversed()];
    Object.assign(batch.document, {
      output_file_id: output.length === 0 ? null : this.#addFile(Buffer.from(output.join(""))).id,
      error_file_id: error.length === 0 ? "" : this.#addFile(Buffer.from(error.join(""))).id,
      request_counts: counts(lines.length, output.length, error.length),
    });
  }
}

/** A line that is answered with a text. */
export function answered(custom_id: string, content: string): OutputLine {
  const body = { choices: [{ message: { role: "assistant", content }, finish_reason: "stop" }] };
  return { file: "output", line: { id: "r", custom_id, response: { status_code: 200, body }, error: null } };
}

/** A line whose upstream refused it. */
export function refusedLine(custom_id: string, message: string): OutputLine {
  const response = { status_code: 400, body: { error: { message, code: "bad_request" } } };
  return { file: "error", line: { id: "r", custom_id, response, error: null } };
}

/** Answers each line with its last message. */
export function echo(line: InputLine): OutputLine {
  const read = z.object({ body: z.object({ messages: z.array(z.object({ content: z.string() })) }) }).parse(line);
  return answered(line.custom_id, read.body.messages.at(-1)?.content ?? "");
}

export function send(reply: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  reply.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
}

function linesOf(file: Buffer | undefined): InputLine[] {
  const texts = (file ?? Buffer.alloc(0)).toString("utf8").split("\n");
  return texts.filter((text: string) => text !== "").map((text: string) => inputLine.parse(JSON.parse(text)));
}

function counts(total: number, completed: number, failed: number) {
  return { total, completed, failed };
}

function jsonOf({ body }: Request): unknown {
  return JSON.parse(body.toString("utf8"));
}

/** The content of a form's field that is a file; checks that the request's length is told, and right. */
function formFile({ headers, body }: Request, name: string): Buffer {
  if (headers["content-length"] !== String(body.length)) throw new Error("the form's length is not told");
  const boundary = /boundary=(.+)$/.exec(headers["content-type"] ?? "")?.[1] ?? "";
  const begin = body.indexOf(`name="${name}"; filename=`);
  const start = body.indexOf("\r\n\r\n", begin) + 4;
  const end = body.lastIndexOf(`\r\n--${boundary}--\r\n`);
  if (boundary === "" || begin === -1 || end < start) throw new Error("the form has no such file");
  return body.subarray(start, end);
}
