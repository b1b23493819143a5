/** WebSocket upgrades to routes that may have none, and what is sent where one opens. */
import type { Random } from "../../bench/adversary/random.ts";

export function upgradeHeaders(random: Random): (readonly [name: string, value: string])[] {
  const key = random.pick(["dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25jZQ==", "c2hvcnQ=", "short"]);
  return [
    ["connection", random.pick(["Upgrade", "upgrade, close", "keep-alive, Upgrade"])],
    ["upgrade", random.pick(["websocket", "websocket", "WebSocket", "h2c", "x"])],
    // The runtime itself refuses other versions, and an empty key.
    ["sec-websocket-version", "13"],
    ["sec-websocket-key", key],
    ...(random.chance(0.2) ? ([["sec-websocket-protocol", "fanout, x"]] as const) : []),
  ];
}

/** Frames: text, invalid UTF-8, no mask, a length of 2^63, an unknown opcode, a ping that is too long, a close without a code. */
export function hostileFrames(random: Random): Uint8Array {
  const frames = [
    masked(0x81, Buffer.from('{"after":0}')),
    masked(0x81, Buffer.from([0xff, 0xfe])),
    Buffer.from([0x81, 0x02, 0x61, 0x62]),
    Buffer.from([0x81, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]),
    masked(0x8b, Buffer.from("x")),
    masked(0x89, Buffer.alloc(126, 1)),
    masked(0x88, Buffer.from([1])),
    masked(0x82, Buffer.alloc(100_000, 7)),
    masked(0x01, Buffer.from("never ends")),
    masked(0xf1, Buffer.from("reserved bits")),
  ];
  return Buffer.concat(Array.from({ length: random.integer(1, 4) }, () => random.pick(frames)));
}

/** A frame whose mask is zero. */
function masked(opcode: number, payload: Uint8Array): Uint8Array {
  const { length } = payload;
  const size =
    length < 126
      ? [0x80 | length]
      : length < 65_536
        ? [0xfe, length >> 8, length & 0xff]
        : [0xff, 0, 0, 0, 0, (length >> 24) & 0xff, (length >> 16) & 0xff, (length >> 8) & 0xff, length & 0xff];
  return Buffer.concat([Buffer.from([opcode, ...size, 0, 0, 0, 0]), payload]);
}
