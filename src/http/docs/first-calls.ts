/** The beginning of the reference: the two requests that a newcomer sends first. */
import { html } from "hono/html";
import type { Html } from "./text.ts";

const HEADERS = `-H "authorization: Bearer $FANOUT_TOKEN" \\
  -H 'content-type: application/json'`;

/** One call, as a command of a shell. */
export const ONE_CALL = `curl -s $FANOUT_URL/query ${HEADERS} \\
  -d '{"prompt":"Say it again."}'`;

/** Several calls, as a command of a shell. */
export const LIST_OF_CALLS = `curl -s $FANOUT_URL/batch ${HEADERS} \\
  -d '{"prompts":["one","two","three"]}'`;

/** Guide pages of the source's `docs` folder, and what each explains. The gateway does not serve them. */
const GUIDES = [
  ["query.md", "one call"],
  ["batch.md", "a list of calls"],
  ["groups.md", "work that outlives its client"],
  ["runs.md", "budgets and child runs"],
  ["v1.md", "OpenAI and Anthropic clients"],
  ["errors.md", "errors and retries"],
] as const;

export function firstCalls(): Html {
  const guides = GUIDES.map(
    ([file, topic], index) => html`${index === 0 ? "" : ", "}<code>docs/${file}</code> (${topic})`,
  );
  return html`<p>
      Set <code>FANOUT_URL</code> to the address of this gateway and <code>FANOUT_TOKEN</code> to a run token, which the
      operator gets from <a href="#post-runs"><code>POST /runs</code></a
      >. One call:
    </p>
    <pre><code>${ONE_CALL}</code></pre>
    <p><code>text</code> in the reply is the answer. An ordered list of calls, which run in parallel:</p>
    <pre><code>${LIST_OF_CALLS}</code></pre>
    <p>
      <code>results[i]</code> is the answer to <code>prompts[i]</code>. If that call failed, <code>errors[i]</code> has
      the error; otherwise it is null. All fields: <a href="#post-query">POST /query</a>,
      <a href="#post-batch">POST /batch</a>. Client files for fifteen languages: <a href="/stubs">/stubs</a>.
    </p>
    <p>
      Guides with tested examples are in the source: ${guides}. This reference is also available as OpenAPI 3.1:
      <a href="/openapi.json">/openapi.json</a>.
    </p>`;
}
