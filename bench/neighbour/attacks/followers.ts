/** Clients that follow a run and read nothing, and one large entry in its log. */
import type { Attack } from "../attack.ts";

const FOLLOWERS = 240;
const EVENTS = 46;
/** Just below the largest event that a client may add. */
const EVENT_BYTES = 130_000;

const UPGRADE = {
  upgrade: "websocket",
  connection: "upgrade",
  "sec-websocket-version": "13",
  "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
};

export const followers: Attack = {
  what: `${FOLLOWERS} silent followers, and one log post of ${Math.round((EVENTS * EVENT_BYTES) / 1e6)} MB`,
  prepare: async (attacker) => {
    const { id, token } = await attacker.openRun();
    const event = { event_type: "final_result", output: "x".repeat(EVENT_BYTES - 100) };
    const body = JSON.stringify(Array.from({ length: EVENTS }, () => event));
    return async () => {
      await Promise.all(
        Array.from({ length: FOLLOWERS }, (_, at) =>
          attacker.hang(`/runs/${id}/events`, { token, headers: at % 2 === 0 ? UPGRADE : {} }),
        ),
      );
      await attacker.send("/log", { token, body });
    };
  },
};
