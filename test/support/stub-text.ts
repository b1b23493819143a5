/** Bundles stubs as their text, as `rules` of wrangler.toml does in the deployed Worker. */
import type { Plugin } from "esbuild";
import { readFile } from "node:fs/promises";

/** A file in a folder of `stubs/`, whatever its language: some look like modules of the Worker and are none. */
export const IS_STUB = /[\\/]stubs[\\/][^\\/]+[\\/][^\\/]+\.\w+$/;

export const stubText: Plugin = {
  name: "stub-text",
  setup(build) {
    build.onLoad({ filter: IS_STUB }, async ({ path }) => ({ contents: await readFile(path, "utf8"), loader: "text" }));
  },
};
