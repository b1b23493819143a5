/** The part of a run's RPC surface with which it is watched: its log, its followers, its counters. */
import { DurableObject } from "cloudflare:workers";
import type { UsageDocument } from "../../src/contract/runs.ts";
import type { Objects } from "../address.ts";
import type { RunCore } from "./core.ts";
import { runDocumentOf, type StoredDocument } from "./document.ts";
import { appendEvents, logPage } from "./events.ts";
import type * as Rpc from "./rpc.ts";
import { RunShell } from "./shell.ts";
import { usageOf } from "./usage.ts";

export class ObservedRun extends DurableObject<Objects> {
  /** An instance's own property: unlike a method, it cannot be reached over RPC. */
  protected readonly shell: RunShell;

  constructor(ctx: DurableObjectState, env: Objects) {
    super(ctx, env);
    this.shell = new RunShell(ctx, env);
  }

  // ---- the log ----

  /** Stored events after number `after`, a page of them; null when there is no such run, or `caller` may not see it. */
  async logPage(after: number, caller: string | null): Promise<Rpc.LogPage | null> {
    if (!mayManage(this.shell.core, caller)) return null;
    await this.shell.flushLog();
    return this.shell.core === null ? null : logPage(this.shell.core, this.shell.store, after);
  }

  /** Adds a client's own events, each a JSON object as text. The number of the last; null as above. */
  async appendLog(
    events: Rpc.ClientEvent[],
    caller: string | null,
  ): Promise<{ ok: true; seq: number } | Rpc.Refused | null> {
    if (!mayManage(this.shell.core, caller)) return null;
    return this.shell.submit((reply, nowMs) => reply(appendEvents(this.shell.opened, this.shell.store, events, nowMs)));
  }

  /** A follower's socket: see followers.ts. Who may follow is checked by who asks. */
  override fetch(): Response {
    const socket = this.shell.core === null ? null : this.shell.followers.accept();
    return socket === null
      ? new Response(null, { status: 503 })
      : new Response(null, { status: 101, webSocket: socket });
  }

  override webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): void {
    this.shell.follow(socket, Number(message));
  }

  override webSocketClose(socket: WebSocket): void {
    this.shell.followers.forget(socket);
  }

  override webSocketError(socket: WebSocket): void {
    this.shell.followers.forget(socket);
  }

  // ---- counters ----

  /** What the run has used since its usage was last shown as zero; with `reset`, it counts from zero again. */
  async usage(caller: string | null, reset: boolean): Promise<UsageDocument | null> {
    if (!mayManage(this.shell.core, caller)) return null;
    const used = usageOf(this.shell.opened);
    if (reset) await this.shell.write((core) => core.base.reset("usage", core));
    return used;
  }

  /** Counts the run's statistics and metrics from zero again. The document then; null as above. */
  async resetStats(caller: string | null): Promise<StoredDocument | null> {
    if (!mayManage(this.shell.core, caller)) return null;
    await this.shell.write((core) => core.base.reset("stats", core));
    return runDocumentOf(this.shell.opened, Date.now());
  }

  /** Closes the grouping window: the next single call opens another. False as above. */
  async flushWindow(caller: string | null): Promise<boolean> {
    if (!mayManage(this.shell.core, caller)) return false;
    // In a turn of its own: a group that waited for nothing but its window ends with it.
    await this.shell.write((core) => {
      core.state.window.flush();
      return null;
    });
    return true;
  }

  /** Rows written by this instance, and those of them that are the log's: the cost that Cloudflare bills most for. */
  rowsWritten(): { all: number; log: number } {
    return { all: this.shell.store.rowsWritten, log: this.shell.store.log.written };
  }
}

/** A run may be looked at, closed and cancelled by itself and by the runs above it; `caller` null = the operator. */
export function mayManage(core: RunCore | null, caller: string | null): core is RunCore {
  if (core === null) return false;
  const { id, ancestors } = core.settings;
  return caller === null || caller === id || ancestors.includes(caller);
}
