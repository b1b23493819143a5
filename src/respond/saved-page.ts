/**
 * The page of a run as one file: script, style and the run's log are in it, so it shows the same without a gateway. Its own
 * policy lets nothing run but that script, and lets it load nothing.
 */
import type { EventLine } from "../observe/events.ts";

/** The built page. */
export type PageFiles = { script: string; style: string };

/** Text of the file, piece by piece: a log of any length is never held whole. */
export async function* savedPage(
  run: { id: string; savedAt: string; document: unknown },
  pages: AsyncIterable<Pick<EventLine, "json">[]>,
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
  for await (const page of pages) {
    if (page.length === 0) continue;
    // Each line is the text of a line: the page reads it as it reads one that arrives.
    yield separator + page.map(({ json }) => jsonText(json)).join(",\n");
    separator = ",\n";
  }
  yield `]}</script>
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
