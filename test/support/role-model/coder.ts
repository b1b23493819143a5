/** The coder: changes the files whose text it was given, and reviews the edits that it was shown. It invents neither. */
import { asksFor, type Request, type SentFile } from "./request.ts";

/** Faults that it knows by sight, and what it writes in their place. */
const FAULTS: readonly { is: RegExp; becomes: string; why: string }[] = [
  { is: /\beval\(/, becomes: "ast.literal_eval(", why: "eval runs what a user typed" },
  { is: /== None\b/, becomes: "is None", why: "None is compared by identity" },
  { is: /\bexcept:/, becomes: "except Exception:", why: "a bare except hides an interrupt" },
  { is: /\bmd5\(/, becomes: "sha256(", why: "md5 is broken" },
];

type Edit = { path: string; search: string; replace: string; why: string };

const NO_FILE = "I was given no file.";

/** The answer to a request for work on files: edits in the form that it asks for, or a sentence. */
export function work(request: Request, action: string): string {
  if (request.files.length === 0) return asksFor(request, "edits") ? answer(NO_FILE, []) : NO_FILE;
  const edits = request.files.flatMap((file) => editsOf(file, action));
  const names = request.files.map(({ path }) => path).join(", ");
  const found = edits.map(({ path, why }) => `${path}: ${why}`).join("; ");
  const summary = edits.length === 0 ? `Read ${names}: nothing to change.` : `Read ${names}. ${found}.`;
  return asksFor(request, "edits") ? answer(summary, edits) : summary;
}

function answer(summary: string, edits: readonly Edit[]): string {
  return JSON.stringify({ summary, edits });
}

function editsOf(file: SentFile, action: string): Edit[] {
  if (action === "test") return testOf(file);
  if (action === "docs") return docsOf(file);
  return file.text.split("\n").flatMap((line) => {
    const fault = FAULTS.find(({ is }) => is.test(line));
    if (fault === undefined) return [];
    return [{ path: file.path, search: line, replace: line.replace(fault.is, fault.becomes), why: fault.why }];
  });
}

/** A new file that calls each function that the text defines. */
function testOf({ path, text }: SentFile): Edit[] {
  const names = [...text.matchAll(/^def (\w+)\(/gm)].map(([, name = ""]) => name);
  if (names.length === 0) return [];
  const module = path.replace(/^.*\//, "").replace(/\.py$/, "");
  const tests = names.map((name) => `def test_${name}():\n    assert callable(${name})\n`).join("\n\n");
  const replace = `from ${module} import ${names.join(", ")}\n\n\n${tests}`;
  const folder = path.includes("/") ? path.replace(/[^/]*$/, "") : "";
  return [{ path: `${folder}test_${module}.py`, search: "", replace, why: `tests ${names.join(", ")}` }];
}

/** A line that says what the first line of the text, its title, stands for. */
function docsOf({ path, text }: SentFile): Edit[] {
  const [title = ""] = text.split("\n");
  if (title.trim() === "") return [];
  return [
    {
      path,
      search: title,
      replace: `${title}\n\nThis page was checked against the code.`,
      why: "says what was checked",
    },
  ];
}

/** A review of an edit: it must be shown the file, and the edit must fit it and bring no fault that it knows. */
export function review(request: Request): string {
  const { files, text } = request;
  const edit =
    /<edit path="([^"]+)">\n<search>\n([\s\S]*?)\n?<\/search>\n<replace>\n([\s\S]*?)\n?<\/replace>\n<\/edit>/.exec(
      text,
    );
  const say = (approved: boolean, reason: string): string =>
    asksFor(request, "approved") ? JSON.stringify({ approved, reason }) : reason;
  if (edit === null) return say(false, "I was shown no edit.");
  const [, path = "", search = "", replace = ""] = edit;
  const file = files.find((each) => each.path === path);
  if (search !== "" && file === undefined) return say(false, NO_FILE);
  if (search !== "" && file?.text.includes(search) === false) return say(false, `${path} has no such text.`);
  const fault = FAULTS.find(({ is }) => is.test(replace.replaceAll("literal_eval(", "")));
  if (fault !== undefined) return say(false, `${path}: ${fault.why}.`);
  return say(true, `${path}: the edit fits the file.`);
}
