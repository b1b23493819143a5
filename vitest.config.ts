import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { buildSync } from "esbuild";
import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import type { Plugin } from "vitest/config";
import { IS_STUB } from "./test/support/stub-text.ts";
import { objectVars } from "./test/support/object-vars.ts";

const COMPATIBILITY_DATE = "2026-11-01";
const COMPATIBILITY_FLAGS = ["enable_request_signal"];

/** Where to write the results as JSON, for a program that counts them; unset = nowhere. */
const reportFile = process.env["FANOUT_TEST_REPORT"];

/** Histories of a tree of runs in the property tests over the real objects; each has a hundred operations. */
const treeRuns = process.env["FANOUT_TREE_RUNS"] ?? "10";

/** Tests of the tests' own tools, which run on a Worker of their own and not on the gateway. */
const supportTests = ["test/objects/emulator.test.ts", "test/objects/upstream-worker.test.ts"];

/** A bundle of the upstream that receives every fetch of the Workers under test. */
const upstreamWorker = {
  name: "upstream",
  compatibilityDate: COMPATIBILITY_DATE,
  // It counts the connections that its callers close.
  compatibilityFlags: COMPATIBILITY_FLAGS,
  modules: [{ type: "ESModule" as const, path: "upstream.mjs", contents: bundle("test/support/upstream-worker.ts") }],
  // Its counters live in memory: an eviction would forget them in the middle of a test.
  durableObjects: { UPSTREAM: { className: "UpstreamObject", useSQLite: true, unsafePreventEviction: true } },
};

export default defineConfig({
  test: {
    // Tests of timers, leases and restarts mostly wait: one file more than there are cores costs none of them anything.
    maxWorkers: Math.max(2, availableParallelism() + 1),
    reporters: reportFile ? ["default", ["json", { outputFile: reportFile }]] : ["default"],
    projects: [
      {
        plugins: [textModules()],
        test: { name: "unit", include: ["test/unit/**/*.test.ts"] },
      },
      {
        plugins: [
          textModules(),
          cloudflareTest({
            wrangler: { configPath: "./wrangler.toml" },
            miniflare: {
              bindings: { ...objectVars, TREE_RUNS: treeRuns },
              outboundService: "upstream",
              workers: [upstreamWorker],
            },
          }),
        ],
        test: {
          name: "objects",
          include: ["test/objects/**/*.test.ts"],
          exclude: [...supportTests],
          setupFiles: ["test/setup/objects.ts"],
          testTimeout: 20_000,
          // What is waited for takes its time where other files run beside it.
          expect: { poll: { timeout: 10_000 } },
        },
      },
      {
        plugins: [
          cloudflareTest({
            main: "./test/support/fixtures/fan-out-worker.ts",
            miniflare: {
              compatibilityDate: COMPATIBILITY_DATE,
              compatibilityFlags: COMPATIBILITY_FLAGS,
              durableObjects: { FAN_OUT: { className: "FanOutObject", useSQLite: true } },
              outboundService: "upstream",
              workers: [upstreamWorker],
            },
          }),
        ],
        test: { name: "emulator", include: [...supportTests], setupFiles: ["test/setup/emulator.ts"] },
      },
      {
        test: {
          name: "contract",
          include: ["test/contract/**/*.test.ts"],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        // Some languages take seconds to start.
        test: { name: "stubs", include: ["test/stubs/**/*.test.ts"], testTimeout: 60_000, hookTimeout: 60_000 },
      },
      {
        // A page is one test, and types all of its blocks.
        test: { name: "docs", include: ["test/docs/**/*.test.ts"], testTimeout: 60_000, hookTimeout: 60_000 },
      },
      {
        test: { name: "examples", include: ["test/examples/**/*.test.ts"], testTimeout: 60_000, hookTimeout: 60_000 },
      },
      {
        test: {
          name: "clients",
          include: ["test/clients/**/*.test.ts"],
          testTimeout: 15_000,
          hookTimeout: 60_000,
          env: { OPENAI_MAJOR: "7" },
        },
      },
      {
        // The same tests of OpenAI's client with its former version, which differs in errors, timeouts and embeddings.
        resolve: { alias: { openai: "openai-6" } },
        test: {
          name: "clients-openai-6",
          include: ["test/clients/openai*.test.ts"],
          testTimeout: 15_000,
          hookTimeout: 60_000,
          env: { OPENAI_MAJOR: "6" },
        },
      },
    ],
  },
});

/** The import of a stub is the file's text, as wrangler's rules make it in the deployed Worker. */
function textModules(): Plugin {
  return {
    name: "text-modules",
    enforce: "pre",
    transform(code, id) {
      return IS_STUB.test(id) ? { code: `export default ${JSON.stringify(code)};`, map: null } : undefined;
    },
  };
}

function bundle(entryPoint: string): string {
  const built = buildSync({
    entryPoints: [entryPoint],
    bundle: true,
    write: false,
    format: "esm",
    target: "es2024",
    external: ["cloudflare:*"],
  });
  return built.outputFiles[0]?.text ?? "";
}
