/** Builds the page at `/ui` from `ui/`: one script and one style sheet, which the Worker has as texts. */
import { buildSync } from "esbuild";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Writes `ui/dist/app.js` and `ui/dist/app.css` under `root`. Throws esbuild's list of errors. */
export function buildPage(root: string): void {
  // Benchmarks bundle older commits too, which have no page.
  if (!existsSync(join(root, "ui", "main.tsx"))) return;
  const built = buildSync({
    absWorkingDir: root,
    entryPoints: { app: "ui/main.tsx", style: "ui/style.css" },
    outdir: "ui/dist",
    bundle: true,
    write: false,
    minify: true,
    format: "esm",
    target: "es2022",
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "none",
    logLevel: "silent",
  });
  const folder = join(root, "ui", "dist");
  mkdirSync(folder, { recursive: true });
  for (const { path, text } of built.outputFiles) {
    const file = join(folder, path.endsWith(".js") ? "app.js" : "app.css");
    // A gateway that may not write to its own folder, as in the image, starts with the page that is there.
    if (existsSync(file) && readFileSync(file, "utf8") === text) continue;
    // Another process may build at the same time: readers see one whole file or the other.
    const written = `${file}.${process.pid}`;
    writeFileSync(written, text);
    renameSync(written, file);
  }
}
