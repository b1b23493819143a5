/** A client with a connection of its own, which it can break off at any moment. */
import { request, type ClientRequest, type IncomingMessage } from "node:http";
import type { World } from "./world.ts";

export type Client = {
  /** Everything that has arrived of the answer's body. */
  text(): string;
  /** Waits for the answer's end, or the connection's. */
  ended: Promise<void>;
  /** Resets the connection: plain workerd notices this, but not one that is merely closed on one side. */
  leave(): void;
};

/** Posts a JSON body and lets the answer come. */
export function clientOf(
  world: World,
  path: string,
  { token, json, headers }: { token: string; json: unknown; headers?: Record<string, string> },
): Client {
  const body = JSON.stringify(json);
  const sent = { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers };
  const asked = request(world.gateway.url + path, { method: "POST", agent: false, headers: sent });
  let text = "";
  const ended = answerOf(asked, (piece) => (text += piece));
  asked.end(body);
  return { text: () => text, ended, leave: () => void asked.socket?.resetAndDestroy() };
}

function answerOf(asked: ClientRequest, take: (piece: string) => void): Promise<void> {
  return new Promise((resolve) => {
    // A connection that its owner breaks off is an error to Node; here it is what was meant.
    asked.once("error", () => resolve());
    asked.once("response", (response: IncomingMessage) => {
      response.setEncoding("utf8").on("data", take);
      response.once("error", () => resolve());
      response.once("close", () => resolve());
    });
  });
}
