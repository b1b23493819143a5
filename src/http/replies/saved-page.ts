/**
 * The page of a run as one file: script, style and the run's log are in it, so it shows the same without a gateway. Its own
 * policy lets nothing run but that script, and lets it load nothing.
 */
import { SAVED_GRAPHS_MAX } from "../../limits.ts";
import type { EventLine } from "../../log/events.ts";

/** The built page. */
export type PageFiles = { script: string; style: string };

/** `outlineOf`: the shape of a graph by the id of its group; null if it is gone. */
type SavedRun = {
  id: string;
  savedAt: string;
  document: unknown;
  outlineOf: (group: string) => Promise<unknown>;
};

/** Text of the file, piece by piece: a log of any length is never held whole. */
export async function* savedPage(
  run: SavedRun,
  pages: AsyncIterable<Pick<EventLine, "json" | "event">[]>,
  { script: built, style }: PageFiles,
): AsyncGenerator<string> {
  const script = inScript(built);
  const policy = [
    "default-src 'none'",
    `script-src 'sha256-${await digestOf(script)}'`,
    `style-src 'sha256-${await digestOf(style)}'`,
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  yield `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${run.id.replace(/[^\w-]/g, "")}</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body><div id="page"></div>
<script type="application/json" id="saved-run">{"id":${jsonText(run.id)},"saved_at":${jsonText(run.savedAt)},"document":${jsonText(run.document)},"lines":[`;
  let separator = "";
  const graphs: string[] = [];
  for await (const page of pages) {
    if (page.length === 0) continue;
    for (const { event } of page) {
      if (event.event === "group_started" && event.tasks !== undefined) graphs.push(event.group ?? "");
      if (graphs.length > SAVED_GRAPHS_MAX) graphs.shift();
    }
    // Each line is the text of a line: the page reads it as it reads one that arrives.
    yield separator + page.map(({ json }) => jsonText(json)).join(",\n");
    separator = ",\n";
  }
  yield `],"graphs":{`;
  // One at a time, because each may be large. The page shows the last ones.
  for (const [at, group] of graphs.entries()) {
    yield `${at === 0 ? "" : ","}${jsonText(group)}:${jsonText(await run.outlineOf(group))}`;
  }
  yield `}}</script>
<script type="module">${script}</script>
</body>
</html>
`;
}

/** JSON that ends no element: a text of the log may contain `</script>`. */
function jsonText(value: unknown): string {
  return (JSON.stringify(value) ?? "null").replaceAll("<", "\\u003c");
}

/** A script whose texts end no element. Only texts and patterns contain these words, and there the backslash changes nothing. */
function inScript(text: string): string {
  return text.replaceAll(/<(?=\/script|!--)/gi, "\\x3c");
}

async function digestOf(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return btoa(String.fromCharCode(...new Uint8Array(digest)));
}
