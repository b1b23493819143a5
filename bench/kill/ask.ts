/** One request to a gateway that may be killed during it. */

export type Answer = { status: number; headers: Headers; text: string };

export type Question = {
  /** JSON text: posted if given. */
  body?: string;
  headers?: Record<string, string>;
  /** Gives up when aborted; by default after a minute. */
  signal?: AbortSignal;
  /** Called when the status has arrived. */
  onReply?: () => void;
};

/** Longest wait for a reply that needs no upstream, ms. */
const ANSWER_MS_MAX = 60_000;

/** Null if the gateway was down, was killed before the end of its reply, or the request was aborted. */
export async function ask(url: string, token: string, question: Question = {}): Promise<Answer | null> {
  const { body, onReply, signal = AbortSignal.timeout(ANSWER_MS_MAX) } = question;
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", ...question.headers };
  try {
    const posted = body === undefined ? {} : { method: "POST", body };
    const response = await fetch(url, { headers, signal, ...posted });
    onReply?.();
    return { status: response.status, headers: response.headers, text: await response.text() };
  } catch {
    return null;
  }
}
