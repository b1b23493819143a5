/** One thing of each kind that a path or a body can name, made in a run over HTTP. */
import { z } from "zod";
import type { Gateway, GatewayRequest } from "./gateway.ts";

/** The ids of what a run has. Without R2 there are no files, and no batches of them. */
export type Things = {
  group: string;
  dag: string;
  context: string;
  /** A child run. */
  child: string;
  files: { file: string; upload: string; part: string; batch: string; messageBatch: string } | null;
};

const withId = z.looseObject({ id: z.string() });

/** The id in the answer to a request of a run, a POST by default. Throws if the request is refused. */
async function idFrom(gateway: Gateway, token: string, path: string, request: GatewayRequest): Promise<string> {
  const answer = await gateway.fetch(path, { token, method: "POST", ...request });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${path} was answered ${answer.status}: ${text}`);
  return withId.parse(JSON.parse(text)).id;
}

/** Makes them. `words` are in every text that they hold; `hasFiles`: the gateway has R2. */
export async function makeThings(
  gateway: Gateway,
  token: string,
  { words, hasFiles }: { words: string; hasFiles: boolean },
): Promise<Things> {
  const make = (path: string, request: GatewayRequest) => idFrom(gateway, token, path, request);
  const tasks = [
    { id: "a", prompt: words },
    { id: "b", prompt: "{{a.output}}" },
  ];
  return {
    group: await make("/batch", { json: { prompts: [words, "two"] } }),
    dag: await make("/dag", { json: { tasks } }),
    context: await make("/contexts", { json: { text: `${words} one two three` } }),
    child: await make("/runs", { json: { budget: { calls: 1 }, name: words } }),
    files: hasFiles ? await makeFiles(make, words) : null,
  };
}

async function makeFiles(
  make: (path: string, request: GatewayRequest) => Promise<string>,
  words: string,
): Promise<NonNullable<Things["files"]>> {
  const body = { model: "sim/echo", messages: [{ role: "user", content: words }] };
  const line = { custom_id: "a", method: "POST", url: "/v1/chat/completions", body };
  const form = new FormData();
  form.set("purpose", "batch");
  form.set("file", new Blob([`${JSON.stringify(line)}\n`]), "lines.jsonl");
  const file = await make("/v1/files", { body: form });
  const upload = await make("/v1/uploads", {
    json: { filename: words, purpose: "user_data", bytes: 3, mime_type: "text/plain" },
  });
  const data = new FormData();
  data.set("data", new Blob(["abc"]), "part");
  return {
    file,
    upload,
    part: await make(`/v1/uploads/${upload}/parts`, { body: data }),
    batch: await make("/v1/batches", {
      json: { input_file_id: file, endpoint: "/v1/chat/completions", completion_window: "24h" },
    }),
    messageBatch: await make("/v1/messages/batches", {
      json: { requests: [{ custom_id: "a", params: { ...body, max_tokens: 9 } }] },
    }),
  };
}
