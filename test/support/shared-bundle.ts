/** What the processes of a run of tests know of the gateway's bundle: test/setup/bundle.ts makes it, gateway.ts serves it. */

/** The gateway's own entry point. */
export const ENTRY_POINT = "src/index.ts";

/** The variable that names the bundle's file. Not set: each process bundles for itself, as benchmarks do. */
export const BUNDLE_FILE = "FANOUT_TEST_BUNDLE";
