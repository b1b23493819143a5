/** Bundles stubs and the page's files as text, as the `rules` of wrangler.toml do for the deployed Worker. */
import type { Plugin } from "esbuild";
import { readFile } from "node:fs/promises";

/**
 * A file in a folder of `stubs/`, or one of the built page: some have the extension of a module but are not part of the
 * Worker.
 */
export const IS_TEXT = /[\\/](stubs[\\/][^\\/]+|ui[\\/]dist)[\\/][^\\/]+\.\w+$/;

export const textFiles: Plugin = {
  name: "text-files",
  setup(build) {
    build.onLoad({ filter: IS_TEXT }, async ({ path }) => ({ contents: await readFile(path, "utf8"), loader: "text" }));
  },
};
