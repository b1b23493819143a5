/** Forms as the unmodified OpenAI clients send them, read from the request as it arrives. */
import { createReadStream, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { ReadStream } from "node:fs";
import { createServer } from "node:http";
import type { Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import OpenAI, { toFile } from "openai";
import OpenAI6, { toFile as toFile6 } from "openai-6";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FormReader } from "../../../src/files/multipart.ts";
import { boundaryOf } from "../../../src/files/part-header.ts";
import { streamSource } from "../../../src/files/source.ts";
import { findAll } from "../../support/forms.ts";
import type { Found } from "../../support/forms.ts";

/** Longer than any chunk on the way, with text outside ASCII. */
const CONTENT = `{"custom_id":"é","n":1}\r\n--\n`.repeat(20_000);

let server: Server;
let baseURL = "";
let folder = "";
let path = "";
const received: { found: Found[]; contentLength: string | undefined }[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "fanout-forms-"));
  path = join(folder, "prompts é.jsonl");
  writeFileSync(path, CONTENT);
  server = createServer(async (request, response) => {
    const boundary = boundaryOf(request.headers["content-type"] ?? null);
    if (!boundary.ok) throw new Error("the client sent no form");
    const body = new ReadableStream<Uint8Array>({
      async start(controller) {
        for await (const chunk of Readable.from(request)) controller.enqueue(chunk);
        controller.close();
      },
    });
    const reader = new FormReader(streamSource(body, "the client left"), {
      boundary: boundary.boundary,
      files: ["file"],
    });
    received.push({ found: await findAll(reader), contentLength: request.headers["content-length"] });
    response.setHeader("content-type", "application/json").end(`{"id":"file-1","object":"file"}`);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  baseURL = `http://127.0.0.1:${address.port}/v1`;
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  rmSync(folder, { recursive: true, force: true });
});

type Sendable = File | Response | ReadStream;

describe.each([
  ["7", OpenAI, toFile],
  ["6", OpenAI6, toFile6],
])("openai-node %s", (_, Client, toFile) => {
  const create = async (file: Sendable) => {
    const client = new Client({ apiKey: "key", baseURL, maxRetries: 0 });
    await client.files.create({ file, purpose: "batch", expires_after: { anchor: "created_at", seconds: 3_600 } });
    const last = received.pop();
    if (last === undefined) throw new Error("nothing was received");
    return last;
  };

  it.each<[string, () => Promise<Sendable>, string]>([
    ["a read stream", async () => createReadStream(path), "prompts é.jsonl"],
    ["a File", async () => new File([CONTENT], 'a "quoted" 日本.jsonl'), 'a "quoted" 日本.jsonl'],
    ["bytes with a name", () => toFile(Buffer.from(CONTENT), "b.jsonl"), "b.jsonl"],
    ["bytes without a name", () => toFile(Buffer.from(CONTENT)), "unknown_file"],
    ["a Response", async () => new Response(CONTENT), "unknown_file"],
  ])("sends %s that arrives whole, with purpose and expiry", async (_, makeFile, filename) => {
    const { found } = await create(await makeFile());
    const fields = found.filter((part) => "field" in part);
    expect(fields).toEqual([
      { field: "purpose", value: "batch" },
      { field: "expires_after[anchor]", value: "created_at" },
      { field: "expires_after[seconds]", value: "3600" },
    ]);
    const files = found.flatMap((part) => ("file" in part ? [part] : []));
    expect(files.map((file) => file.filename)).toEqual([filename]);
    expect(new TextDecoder().decode(files[0]?.bytes)).toBe(CONTENT);
  });

  it("sends a read stream without a length, the file before its purpose", async () => {
    const { found, contentLength } = await create(createReadStream(path));
    expect(contentLength).toBeUndefined();
    expect(found[0]).toMatchObject({ file: "file" });
  });
});
