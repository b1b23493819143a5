/** Bundles stubs as text, as the `rules` of wrangler.toml do for the deployed Worker. */
import type { Plugin } from "esbuild";
import { readFile } from "node:fs/promises";

/** A file in a folder of `stubs/`: some have the extension of a module but are not part of the Worker. */
export const IS_STUB = /[\\/]stubs[\\/][^\\/]+[\\/][^\\/]+\.\w+$/;

export const stubText: Plugin = {
  name: "stub-text",
  setup(build) {
    build.onLoad({ filter: IS_STUB }, async ({ path }) => ({ contents: await readFile(path, "utf8"), loader: "text" }));
  },
};
