import { describe, expect, it } from "vitest";
import { eventOfNotice, runEndEvent, type Notice } from "../../../src/run/webhooks.ts";

const RUN = { id: "run_1" };
const ESCALATED: Notice = { kind: "escalated", groupId: "pg-1", notify: {}, index: 2, code: "timeout", atMs: 5_999 };
const ENDED: Notice = { kind: "ended", groupId: "pg-1", notify: {}, status: "partial", atMs: 5_999 };

const parsed = (event: { id: string; body: string } | null): unknown =>
  event === null ? null : { id: event.id, body: JSON.parse(event.body) };

describe("an escalation", () => {
  const event = {
    id: "evt_pg-1_escalated",
    body: {
      id: "evt_pg-1_escalated",
      object: "event",
      created_at: 5,
      type: "group.escalated",
      data: { id: "pg-1", run_id: "run_1", index: 2, tier: "P0", code: "timeout" },
    },
  };

  it("is reported if the group or its run asks for it", () => {
    expect(parsed(eventOfNotice({ ...ESCALATED, notify: { onEscalation: true } }, RUN))).toEqual(event);
    expect(parsed(eventOfNotice(ESCALATED, { ...RUN, notify: { onEscalation: true } }))).toEqual(event);
    expect(eventOfNotice({ ...ESCALATED, notify: { onEnd: true } }, { ...RUN, notify: { onEnd: true } })).toBeNull();
  });

  it("has no tier if it is a vote's", () => {
    const vote: Notice = { ...ESCALATED, index: null, notify: { onEscalation: true } };
    expect(parsed(eventOfNotice(vote, RUN))).toMatchObject({ body: { data: { index: null, tier: null } } });
  });
});

describe("an end", () => {
  it("of a group is reported if the group asks for it, whatever its run does", () => {
    const data = { id: "pg-1", run_id: "run_1", status: "partial" };
    const body = { id: "evt_pg-1_ended", object: "event", created_at: 5, type: "group.ended", data };
    const reported = eventOfNotice({ ...ENDED, notify: { onEnd: true } }, RUN);
    expect(parsed(reported)).toEqual({ id: "evt_pg-1_ended", body });
    expect(eventOfNotice(ENDED, { ...RUN, notify: { onEnd: true } })).toBeNull();
  });

  it("of a run is reported if it asks for it", () => {
    const body = { id: "evt_run_1_ended", object: "event", created_at: 5, type: "run.ended" };
    const reported = runEndEvent({ ...RUN, notify: { onEnd: true } }, "closed", 5_999);
    expect(parsed(reported)).toEqual({
      id: "evt_run_1_ended",
      body: { ...body, data: { id: "run_1", status: "closed" } },
    });
    expect(runEndEvent({ ...RUN, notify: { onEscalation: true } }, "closed", 5_999)).toBeNull();
  });
});
