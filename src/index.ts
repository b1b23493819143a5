/** The Worker: its HTTP application, its entrypoints for bindings, and the classes of its objects. */
import { app } from "./entrypoints/application.ts";

export { BatchObject } from "../durable-objects/batch/object.ts";
export { CassetteObject } from "../durable-objects/cassette/object.ts";
export { DirectoryObject } from "../durable-objects/directory/object.ts";
export { GateObject } from "../durable-objects/gate/object.ts";
export { LaneObject } from "../durable-objects/lane/object.ts";
export { ProviderBatchObject } from "../durable-objects/provider-batch/object.ts";
export { RunObject } from "../durable-objects/run/object.ts";
export { ShelfObject } from "../durable-objects/run-files/object.ts";
export { UpstreamObject } from "../durable-objects/upstream/object.ts";
export { FanoutOperator } from "./entrypoints/operator.ts";
export { FanoutRun } from "./entrypoints/run.ts";

export default { fetch: app.fetch };
export { LaneWorkflow } from "../durable-objects/lane/workflow.ts";
