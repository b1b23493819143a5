/** A receiver of webhooks, which answers each delivery with the status that a test chooses. */
import { createServer, type IncomingMessage } from "node:http";

export type Delivery = { body: string; headers: Record<string, string> };

export type WebhookReceiver = { url: string; deliveries: Delivery[]; stop: () => Promise<void> };

/** @param statusOf The status for a delivery of an event; its first one is number 1. */
export async function startWebhookReceiver(statusOf: (tries: number) => number): Promise<WebhookReceiver> {
  const deliveries: Delivery[] = [];
  const tries = new Map<string, number>();
  const server = createServer((request, response) => {
    void textOf(request).then((body) => {
      const headers: Record<string, string> = {};
      for (const [name, value] of Object.entries(request.headers)) headers[name] = String(value);
      const id = headers["webhook-id"] ?? "";
      const number = (tries.get(id) ?? 0) + 1;
      tries.set(id, number);
      deliveries.push({ body, headers });
      response.writeHead(statusOf(number)).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const stop = () => new Promise<void>((resolve) => server.close(() => resolve()));
  return { url: `http://127.0.0.1:${port}/hook`, deliveries, stop };
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const piece of request.setEncoding("utf8")) text += String(piece);
  return text;
}
