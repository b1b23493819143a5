/**
 * The clients of other systems, acted out: what each sends, and how it takes what comes back, field by field. A field that
 * is missing, or one too many, ends here as it ends in theirs.
 */
import { z } from "zod";
import { postExactly, pythonJson, pythonText, type PythonAnswer } from "./python-http.ts";

const URLLIB = { "content-type": "application/json", "user-agent": "Python-urllib/3.11", connection: "close" };
const REQUESTS = { "content-type": "application/json", "user-agent": "python-requests/2.32.3", accept: "*/*" };

const object = z.record(z.string(), z.unknown());

/** What `json.loads` gives these programs, which take every answer for an object. */
const fieldsOf = ({ json }: PythonAnswer): Record<string, unknown> => object.parse(json);

export type ListClient = {
  one: ((prompt: string) => Promise<unknown>) | null;
  list: (prompts: string[]) => Promise<unknown>;
};

/** shihwesley/rlm-sandbox: one setting, the URL of `/llm_query`; a list is eight threads of single calls. */
export function rlmSandbox(url: string): ListClient {
  const one = async (prompt: string): Promise<unknown> => {
    const answer = await postExactly(url, URLLIB, pythonJson({ prompt }));
    if (answer.status >= 300) throw new Error(`HTTP Error ${answer.status}`);
    const fields = fieldsOf(answer);
    if (!Object.hasOwn(fields, "result")) throw new Error("KeyError: 'result'");
    return fields["result"];
  };
  const safely = (prompt: string) => one(prompt).catch((error: Error) => `[error] ${error.message}`);
  return { one, list: (prompts) => eightAtATime(prompts, safely) };
}

async function eightAtATime(
  prompts: readonly string[],
  send: (prompt: string) => Promise<unknown>,
): Promise<unknown[]> {
  const results: unknown[] = Array.from({ length: prompts.length });
  const rest = prompts.entries();
  const worker = async () => {
    for (const [index, prompt] of rest) results[index] = await send(prompt);
  };
  await Promise.all(Array.from({ length: Math.min(prompts.length, 8) }, worker));
  return results;
}

/** alexzhang13/rlm in Docker: one setting, the address of its proxy. It never looks at a status. */
export function rlmDocker(proxy: string, kind: "llm" | "rlm"): ListClient {
  const { url, headers } = withBasic(proxy);
  const post = async (path: string, body: object): Promise<Record<string, unknown>> =>
    fieldsOf(await postExactly(`${url}/${path}`, { ...REQUESTS, ...headers }, pythonJson(body)));
  return {
    one: async (prompt) => {
      const read = await post(`${kind}_query`, { prompt, model: null, depth: 1 });
      return read["response"] || `Error: ${pythonText(read["error"])}`;
    },
    list: async (prompts) => {
      const read = await post(`${kind}_query_batched`, { prompts, model: null, depth: 1 });
      const responses = read["responses"];
      if (Array.isArray(responses) && responses.length > 0) return responses;
      return prompts.map(() => `Error: ${pythonText(read["error"])}`);
    },
  };
}

/** What requests makes of a URL with user and password. */
function withBasic(address: string): { url: string; headers: Record<string, string> } {
  const { origin, pathname, username, password } = new URL(address);
  const url = `${origin}${pathname}`.replace(/\/$/, "");
  if (username === "") return { url, headers: {} };
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { url, headers: { authorization: `Basic ${Buffer.from(credentials).toString("base64")}` } };
}

/** alexzhang13/rlm's training worker: a proxy's address and the name of a rollout. It takes any `error` for a failure. */
export function rlmTraining(proxy: string, rollout: string): ListClient {
  const post = async (path: string, body: object): Promise<Record<string, unknown>> => {
    const answer = await postExactly(`${proxy}/rollout/${rollout}/${path}`, URLLIB, pythonJson(body));
    return answer.status < 300 ? fieldsOf(answer) : { error: `HTTP ${answer.status}: ${answer.text}` };
  };
  return {
    one: async (prompt) => {
      const { error, response = "" } = await post("llm_query", { prompt, depth: 1 });
      return error ? `Error: ${pythonText(error)}` : response;
    },
    list: async (prompts) => {
      if (prompts.length === 0) return [];
      const { error, responses } = await post("llm_query_batched", { prompts, depth: 1 });
      if (error) return prompts.map(() => `Error: ${pythonText(error)}`);
      if (!Array.isArray(responses) || responses.length !== prompts.length)
        throw new Error("malformed batched response");
      return responses.map((text: unknown) => (typeof text === "string" ? text : `Error: ${pythonText(text)}`));
    },
  };
}

/** verifiers' worker: the URL of the tools and a secret. A status that is no success raises, and so does any `error`. */
export function verifiersTool(url: string, secret: string, name: string) {
  return async (args: unknown[], kwargs: Record<string, unknown> = {}): Promise<unknown> => {
    const headers = { ...REQUESTS, authorization: `Bearer ${secret}` };
    const answer = await postExactly(url, headers, pythonJson({ tool_name: name, args, kwargs }));
    // Its shell helper shows the body of what failed; the Python worker only the status.
    if (answer.status >= 300) throw new Error(`${answer.status}: ${answer.text}`);
    const fields = fieldsOf(answer);
    if (fields["error"]) throw new Error(pythonText(fields["error"]));
    return Object.hasOwn(fields, "result") ? fields["result"] : fields["result_repr"];
  };
}
