/** One request of a client of the storm: it may leave before its answer, as a client that resets its connection does. */
import { Agent, request } from "node:http";

export type Answer = { status: number; text: string };
/** What became of a request: an answer, or none because the server went away or the client left. */
export type Posted = Answer | "lost" | "left";

const agent = new Agent({ keepAlive: true, maxSockets: Infinity });

/** Posts JSON; `leavesAfterMs` resets the connection then, null = never. Never rejects. */
export function post(url: string, token: string, body: unknown, leavesAfterMs: number | null = null): Promise<Posted> {
  return new Promise((resolve) => {
    const text = JSON.stringify(body);
    const headers = {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      "content-length": Buffer.byteLength(text),
    };
    const sent = request(url, { method: "POST", headers, agent }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.once("end", () =>
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString("utf8") }),
      );
      response.once("error", () => resolve("lost"));
    });
    sent.once("error", () => resolve("lost"));
    if (leavesAfterMs !== null) {
      const timer = setTimeout(() => {
        resolve("left");
        // A connection that is only closed on one side still wants its answer.
        sent.socket?.resetAndDestroy();
        sent.destroy();
      }, leavesAfterMs);
      sent.once("close", () => clearTimeout(timer));
    }
    sent.end(text);
  });
}
