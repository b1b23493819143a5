/** Clients that follow a run and read nothing, and one large entry in its log. */
import type { Attack } from "../attack.ts";

const FOLLOWERS = 240;
const AT_ONCE = 8;
const EVENTS = 46;
/** Just below the largest event that a client may add. */
const EVENT_BYTES = 130_000;

/** As large as followers get them whole. */
const SMALL_EVENT_BYTES = 8_000;
const SMALL_EVENTS = 750;

const UPGRADE = {
  upgrade: "websocket",
  connection: "upgrade",
  "sec-websocket-version": "13",
  "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
};

export const followers: Attack = {
  what: `${FOLLOWERS} silent followers, and log posts of ${Math.round((EVENTS * EVENT_BYTES) / 1e6)} MB, of large events and of small ones`,
  prepare: async (attacker) => {
    const { id, token } = await attacker.openRun();
    const small = { event_type: "execution_result", output: "x".repeat(SMALL_EVENT_BYTES - 100) };
    const smallBody = JSON.stringify(Array.from({ length: SMALL_EVENTS }, () => small));
    const event = { event_type: "final_result", output: "x".repeat(EVENT_BYTES - 100) };
    const body = JSON.stringify(Array.from({ length: EVENTS }, () => event));
    return async () => {
      // A few at a time: a flood of connections would be measured as well, whatever they are for.
      for (let at = 0; at < FOLLOWERS; at += AT_ONCE) {
        await Promise.all(
          Array.from({ length: AT_ONCE }, (_, place) =>
            attacker.hang(`/runs/${id}/events`, { token, headers: (at + place) % 2 === 0 ? UPGRADE : {} }),
          ),
        );
      }
      await attacker.send("/log", { token, body });
      await attacker.send("/log", { token, body: smallBody });
    };
  },
};
