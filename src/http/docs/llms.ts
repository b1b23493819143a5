/**
 * `GET /llms.txt`: what a coding agent needs to use the gateway from nothing, in the form of https://llmstxt.org: title, summary,
 * details, lists of links. Routes, fields and guides come from the OpenAPI document.
 */
import { LIST_OF_CALLS, ONE_CALL } from "./first-calls.ts";
import type { Sliced } from "../../text/bytes/slices.ts";
import { referenceParsing, routesByTag, type Reference } from "./reference.ts";

/** Schemas of the requests that agents send first, with the route of each. */
const REQUESTS = { Query: "POST /query", Batch: "POST /batch" } as const;

/** @param stubs The client file of each language and its path. */
export function* llmsWriting(
  openApi: Sliced<string>,
  stubs: readonly { lang: string; path: string; file: string }[],
): Sliced<string> {
  const reference = yield* referenceParsing(yield* openApi);
  yield;
  const { title, version, description = "" } = reference.info;
  return [
    `# ${title} ${version}\n\n> ${description}`,
    START,
    block("sh", ONE_CALL),
    "`text` in the reply is the answer. Many calls at once, which run in parallel:",
    block("sh", LIST_OF_CALLS),
    RULES,
    ...Object.entries(REQUESTS).map(([schema, route]) => fieldsOf(reference, schema, route)),
    `## Reference\n\n${REFERENCE}`,
    `## Clients\n\n${stubs.map(({ lang, path, file }) => `- [${lang}](${path}): save it as \`${file}\``).join("\n")}`,
    ...[...routesByTag(reference)].map(([tag, routes]) => {
      const lines = routes.map(({ id, method, path, operation }) => {
        const guide = operation["x-guide"];
        return `- [${method} ${path}](/docs#${id}): ${operation.summary ?? ""}${guide === undefined ? "" : ` (${guide})`}`;
      });
      return `## ${tag}\n\n${lines.join("\n")}`;
    }),
  ]
    .join("\n\n")
    .concat("\n");
}

const START = `A program needs two variables: \`FANOUT_URL\`, the address of this gateway, and \`FANOUT_TOKEN\`, a run token, which the
operator gets from \`POST /runs\`. The token is sent as \`Authorization: Bearer\`, or as \`x-api-key\`. It is the only credential in a
sandbox: provider keys stay in the gateway. Clients of OpenAI and Anthropic work with it as their API key: the base URL is
\`$FANOUT_URL/v1\` for OpenAI's, \`$FANOUT_URL\` for Anthropic's. One call:`;

const RULES = `\`results[i]\` belongs to \`prompts[i]\`. If that call failed, \`errors[i]\` has the error and \`results[i]\` is a text that begins with
\`[error]\`; otherwise \`errors[i]\` is null. The other calls are not affected, and the status is 200.

An error has \`code\`, \`message\` and \`retryable\`. Send a request again only if \`retryable\` is true: the gateway makes the attempts of
each call. \`budget_exhausted\` is final: the run's budget does not cover the call. \`GET /budget\` shows what is left. A request that is
repeated under the same header \`Idempotency-Key\` gets the recorded answer and is paid once.

Send all prompts as one batch, not as a loop of single calls and not in chunks of your own: the gateway starts the next call as soon as one ends.`;

const REFERENCE = [
  "- [/docs](/docs): every route and field, as a page",
  "- [/openapi.json](/openapi.json): the same as OpenAPI 3.1",
  "- [/limits](/limits): every bound that a client can reach",
  "- [/stubs](/stubs): client files, one per language, without dependencies",
].join("\n");

/** The fields of a request, each with the first sentence about it. */
function fieldsOf({ components }: Reference, name: string, route: string): string {
  const fields = Object.entries(components.schemas[name]?.properties ?? {}).map(([field, { description }]) => {
    const [sentence = ""] = (description ?? "").split(/(?<=\.) /);
    return sentence === "" ? `\`${field}\`` : `\`${field}\`: ${sentence.replace(/\.$/, "")}`;
  });
  return `Fields of \`${route}\`:\n\n${fields.map((field) => `- ${field}`).join("\n")}`;
}

function block(language: string, code: string): string {
  return `\`\`\`${language}\n${code}\n\`\`\``;
}
