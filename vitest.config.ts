import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { buildSync } from "esbuild";
import { kCurrentWorker } from "miniflare";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import type { Plugin } from "vitest/config";
import { buildPage } from "./scripts/page/bundle.ts";
import { IS_TEXT } from "./scripts/local/text-files.ts";
import { ROOT } from "./scripts/root.ts";
import { isIntended } from "./test/support/intended-errors.ts";
import { LeftToOthers } from "./test/support/left-to-others.ts";
import { objectVars } from "./test/support/object-vars.ts";
import { ShortFilesLast } from "./test/support/short-files-last.ts";

const COMPATIBILITY_DATE = "2026-11-01";
const COMPATIBILITY_FLAGS = ["enable_request_signal", "no_nodejs_global_timers"];

/** Where to write the results as JSON, for a program that counts them; unset = nowhere. */
const reportFile = process.env["FANOUT_TEST_REPORT"];

/** Histories of a tree of runs in the property tests over the real objects; each has a hundred operations. */
const treeRuns = process.env["FANOUT_TREE_RUNS"] ?? "10";

/** Tests of the tests' own tools, which run on a Worker of their own and not on the gateway. */
const supportTests = ["test/objects/emulator.test.ts", "test/objects/upstream-worker.test.ts"];

/** Tests that take about a second or more. `npm test` leaves them to `npm run test:slow`, so that it ends within minutes. */
const SLOW = { name: "slow", description: "takes about a second or more" };

// The Worker imports the built page.
buildPage(ROOT);

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

/**
 * Projects that see the gateway, and programs around it, from outside. Their times are for a busy machine: no test waits
 * for one to be over. Files of a process share its modules, and all share the bundle of the gateway; each has gateways of its own.
 */
const outside = {
  globalSetup: ["test/setup/bundle.ts"],
  testTimeout: 120_000,
  hookTimeout: 120_000,
  expect: { poll: { timeout: 30_000 } },
  isolate: false,
};

/** The message of a failure, which may be all that is left of it, says what was found and not that it was an object. */
const telling = { chaiConfig: { truncateThreshold: 2_000 } };

export default defineConfig({
  test: {
    // Tests of timers, leases and restarts mostly wait: with two files more than there are cores, a core is hardly ever idle.
    maxWorkers: availableParallelism() + 2,
    sequence: { sequencer: ShortFilesLast },
    // The output tells of no error that a test makes on purpose.
    onConsoleLog: (log) => !isIntended(log),
    reporters: [
      "default",
      new LeftToOthers(),
      ...(reportFile === undefined ? [] : [["json", { outputFile: reportFile }] satisfies [string, object]]),
    ],
    tags: [SLOW],
    projects: [
      {
        plugins: [textModules()],
        resolve: { alias: { "cloudflare:workers": join(ROOT, "test/support/platform.ts") } },
        // Property tests take a few seconds of processor time, which is many more of the clock on a machine that is shared.
        // Files of a thread share modules: the gateway's keep nothing between calls, and loading them took half of the time.
        test: {
          name: "unit",
          include: ["test/unit/**/*.test.ts"],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          expect: { poll: { timeout: 20_000 } },
          pool: "threads",
          isolate: false,
        },
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
          globalSetup: ["test/setup/quiet-runtime.ts"],
          setupFiles: ["test/setup/objects.ts"],
          // A runtime loads the gateway once, which takes as long as the tests of a file. Each file begins without objects of others.
          isolate: false,
          testTimeout: 60_000,
          hookTimeout: 60_000,
          // Long enough for a busy machine, and shorter than a found lease's term: what only its end would bring fails.
          expect: { poll: { timeout: 20_000 } },
        },
      },
      {
        plugins: [
          textModules(),
          cloudflareTest({
            wrangler: { configPath: "./wrangler.toml" },
            miniflare: {
              bindings: { ...objectVars, TREE_RUNS: treeRuns },
              outboundService: "upstream",
              workflows: { WORKFLOW: { name: "fanout-lane", className: "LaneWorkflow" } },
              workers: [upstreamWorker],
            },
          }),
        ],
        test: {
          name: "workflows",
          include: ["test/workflows/**/*.test.ts"],
          globalSetup: ["test/setup/quiet-runtime.ts"],
          setupFiles: ["test/setup/objects.ts"],
          // A runtime loads the gateway once, which takes as long as the tests of a file.
          isolate: false,
          testTimeout: 60_000,
          hookTimeout: 60_000,
          // Long enough for a busy machine, and shorter than a found lease's term: what only its end would bring fails.
          expect: { poll: { timeout: 20_000 } },
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
              serviceBindings: { ENTRYPOINT: { name: kCurrentWorker, entrypoint: "FanOutEntrypoint" } },
              outboundService: "upstream",
              workers: [upstreamWorker],
            },
          }),
        ],
        test: {
          name: "emulator",
          include: [...supportTests],
          globalSetup: ["test/setup/quiet-runtime.ts"],
          setupFiles: ["test/setup/emulator.ts"],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          expect: { poll: { timeout: 20_000 } },
        },
      },
      {
        test: { ...outside, name: "contract", include: ["test/contract/**/*.test.ts"] },
      },
      {
        // The gateway's bundle in a simulated platform: it waits for nothing, and shares no module with the gateway's source.
        test: {
          name: "simulation",
          include: ["test/simulation/**/*.test.ts"],
          testTimeout: 300_000,
          hookTimeout: 120_000,
          pool: "threads",
        },
      },
      {
        // Hostile requests at the gateway on plain workerd and in Miniflare.
        test: { ...outside, name: "fuzz", include: ["test/fuzz/**/*.test.ts"] },
      },
      {
        // Some languages take seconds to start.
        test: { ...outside, name: "stubs", include: ["test/stubs/**/*.test.ts"] },
      },
      {
        // A page is one test, and types all of its blocks.
        test: { ...outside, testTimeout: 180_000, name: "docs", include: ["test/docs/**/*.test.ts"] },
      },
      {
        // The run page in Chromium.
        test: { ...outside, name: "page", include: ["test/page/**/*.test.ts"] },
      },
      {
        test: { ...outside, name: "examples", include: ["test/examples/**/*.test.ts"] },
      },
      {
        test: { ...outside, name: "clients", include: ["test/clients/**/*.test.ts"], env: { OPENAI_MAJOR: "7" } },
      },
      {
        // The same tests of OpenAI's client with its former version, which differs in errors, timeouts and embeddings.
        resolve: { alias: { openai: "openai-6" } },
        test: {
          ...outside,
          name: "clients-openai-6",
          include: ["test/clients/openai*.test.ts"],
          env: { OPENAI_MAJOR: "6" },
        },
      },
    ].map((project) => ({ ...project, test: { ...project.test, ...telling } })),
  },
});

/** The import of a stub, or of a file of the run page, is the file's text, as wrangler's rules make it in the deployed Worker. */
function textModules(): Plugin {
  return {
    name: "text-modules",
    enforce: "pre",
    transform(code, id) {
      return IS_TEXT.test(id) ? { code: `export default ${JSON.stringify(code)};`, map: null } : undefined;
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
