/** Notices when the answer of a call begins for whose beginning others wait. */
import { isEventStream } from "../../providers/streamed-answer.ts";
import type { ExchangeDeps } from "../../providers/exchange.ts";

type Fetch = ExchangeDeps["fetch"];

/**
 * A `fetch` that calls `begun` once, with the first bytes of a stream: its headers may come before the provider has read the prompt.
 * The headers of any other answer come when it is made. An error begins nothing.
 */
export function announcing(fetch: Fetch, begun: () => void): Fetch {
  return async (url, init) => {
    const response = await fetch(url, init);
    if (!response.ok) return response;
    if (isEventStream(response) && response.body !== null) return withFirstBytes(response, response.body, begun);
    begun();
    return response;
  };
}

function withFirstBytes(response: Response, body: ReadableStream<Uint8Array>, begun: () => void): Response {
  const reader = body.getReader();
  let hasBegun = false;
  const watched = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (!hasBegun) {
        hasBegun = true;
        if (!done) begun();
      }
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return new Response(watched, { status: response.status, headers: response.headers });
}
