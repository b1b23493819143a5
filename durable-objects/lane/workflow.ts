/**
 * A Workflow that executes one group without a client, in one step. The step has no limit of time, and a limit of five minutes of
 * CPU, of which the 10,000 calls that a group may have need one at most. It is not retried: the run object knows better what is
 * left to do, and lanes do it. An instance stores nothing but that it has ended.
 */
import { WorkflowEntrypoint, type WorkflowEvent, type WorkflowStep } from "cloudflare:workers";
import { configOf } from "../../src/env.ts";
import { attemptJob } from "../../src/executors/job.ts";
import { toolAttempts } from "../../src/executors/tool-task.ts";
import { executeGroup } from "../../src/executors/workflow-group.ts";
import { areHeadersLimited } from "../../src/executors/rules.ts";
import { DEADLINE_MS_MAX } from "../../src/limits.ts";
import { RunCaller } from "../../src/objects/clients/caller.ts";
import type { GroupName, Objects } from "../../src/objects/address.ts";

/** Longest that a group takes, and no retries. */
const STEP = { timeout: DEADLINE_MS_MAX, retries: { limit: 0, delay: 0 } };

export class LaneWorkflow extends WorkflowEntrypoint<Objects, GroupName> {
  override async run({ payload }: Readonly<WorkflowEvent<GroupName>>, step: WorkflowStep): Promise<void> {
    await step.do("execute", STEP, () => this.#execute(payload));
  }

  async #execute({ runId, seq }: GroupName): Promise<void> {
    const parsed = configOf(this.env);
    // Without a configuration nothing can be sent: lanes end the group's calls as misconfigured.
    if (!parsed.ok) return;
    const { upstreams, waitingFetchesMax, toolHosts } = parsed.config;
    const headersLimited = areHeadersLimited(waitingFetchesMax);
    const run = new RunCaller(this.env, runId);
    const place = { upstreams, headersLimited, run, callTools: toolAttempts(run, toolHosts) };
    await executeGroup(seq, {
      objects: this.env,
      run,
      waitingFetchesMax,
      execute: (job, defaultsJson, attempt) => attemptJob(job, defaultsJson, attempt, place),
    });
  }
}
