/** Bundles stubs and the page's files as text, as the `rules` of wrangler.toml do for the deployed Worker. */
import type { Plugin } from "esbuild";
import { readFile } from "node:fs/promises";

/**
 * A stub, or a file of the built page: some have the extension of a module but are not part of the Worker. The names of stubs
 * tell them from the sources of a clone in a folder that is called `stubs`.
 */
export const IS_TEXT = /[\\/](stubs[\\/][^\\/]+[\\/][Ff]anout[^\\/]*|ui[\\/]dist[\\/][^\\/]+)\.\w+$/;

export const textFiles: Plugin = {
  name: "text-files",
  setup(build) {
    build.onLoad({ filter: IS_TEXT }, async ({ path }) => ({ contents: await readFile(path, "utf8"), loader: "text" }));
  },
};
