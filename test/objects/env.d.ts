declare module "*?raw" {
  const text: string;
  export default text;
}

/** Gives `exports` of `cloudflare:workers` the types of the gateway's entry, and `env` those of its bindings. */
declare namespace Cloudflare {
  interface GlobalProps {
    mainModule: typeof import("../../src/index.ts");
    durableNamespaces:
      | "RunObject"
      | "LaneObject"
      | "DirectoryObject"
      | "BatchObject"
      | "ShelfObject"
      | "UpstreamObject"
      | "GateObject"
      | "CassetteObject"
      | "ProviderBatchObject";
  }
  interface Env {
    /** Histories per property test, as text. */
    TREE_RUNS: string;
    FILES: R2Bucket;
    RUN: DurableObjectNamespace<import("../../src/index.ts").RunObject>;
    LANE: DurableObjectNamespace<import("../../src/index.ts").LaneObject>;
    DIRECTORY: DurableObjectNamespace<import("../../src/index.ts").DirectoryObject>;
    BATCH: DurableObjectNamespace<import("../../src/index.ts").BatchObject>;
    SHELF: DurableObjectNamespace<import("../../src/index.ts").ShelfObject>;
    UPSTREAM: DurableObjectNamespace<import("../../src/index.ts").UpstreamObject>;
    GATES: DurableObjectNamespace<import("../../src/index.ts").GateObject>;
    CASSETTE: DurableObjectNamespace<import("../../src/index.ts").CassetteObject>;
    PROVIDER_BATCH: DurableObjectNamespace<import("../../src/index.ts").ProviderBatchObject>;
    /** In the project `workflows` only. */
    WORKFLOW: Workflow<{ runId: string; seq: number }>;
  }
}
