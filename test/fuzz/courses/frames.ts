/** The frames of a WebSocket as a server sends them: not masked. */

export type Frame = { opcode: number; payload: Buffer };

/** The frames that have arrived whole. */
export function framesIn(bytes: Buffer): Frame[] {
  const frames: Frame[] = [];
  for (let at = 0; at + 2 <= bytes.length;) {
    const opcode = (bytes[at] ?? 0) & 0x0f;
    const short = (bytes[at + 1] ?? 0) & 0x7f;
    const sizeBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
    const from = at + 2 + sizeBytes;
    if (from > bytes.length) break;
    const length = sizeBytes === 0 ? short : Number(BigInt(`0x${bytes.toString("hex", at + 2, from)}`));
    if (from + length > bytes.length) break;
    frames.push({ opcode, payload: bytes.subarray(from, from + length) });
    at = from + length;
  }
  return frames;
}
