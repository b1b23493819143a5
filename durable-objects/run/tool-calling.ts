/** The part of a run's RPC surface through which its tools are called. The calls are made by the Workers that ask. */
import type { ToolReport } from "../../src/engine/log.ts";
import type { ToolCallName } from "../../src/tools/permits.ts";
import { ObservedRun } from "./observed.ts";
import type * as Rpc from "./rpc.ts";
import { askTool, beatTool, endTool } from "./tool-calls.ts";

export class ToolCallingRun extends ObservedRun {
  /** Asks for the permit of a tool call; waits for it a few seconds. Asking again takes up the same place. */
  acquireTool(call: ToolCallName): Promise<Rpc.AcquireToolReply> {
    return this.shell.submit((reply, nowMs) => {
      const core = this.shell.active;
      if (!("reason" in core)) return askTool(core, call, reply, nowMs);
      reply({ ok: false, reason: core, remainingNanoUsd: this.shell.core?.remainingNanoUsd ?? null });
    });
  }

  /** Keeps a tool call's permit alive. False: it was given up, and the call must stop. */
  beatTool(call: ToolCallName): boolean {
    return this.shell.core !== null && beatTool(this.shell.core, call, Date.now());
  }

  /** Takes the permit back, and tells the log what the call came to, durably; null = it was never made. */
  async endTool(callId: string, report: ToolReport | null): Promise<void> {
    await this.shell.submit<void>((reply, nowMs) => {
      if (this.shell.core !== null) endTool(this.shell.core, callId, report, nowMs);
      reply();
    });
    // No other row remembers what a tool was made to do.
    await this.shell.flushLog();
  }
}
