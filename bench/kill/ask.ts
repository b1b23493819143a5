/** One request to a gateway that may die under it. */

export type Answer = { status: number; headers: Headers; text: string };

export type Question = {
  /** JSON text: posted if given. */
  body?: string;
  headers?: Record<string, string>;
  /** Gives up when aborted; by default after a minute. */
  signal?: AbortSignal;
  /** Called when the status has arrived. */
  heard?: () => void;
};

/** Longest wait for an answer that is made at once, ms. */
const ANSWER_MS_MAX = 60_000;

/** Null when the gateway was not there, or not until the answer's end, or the question was given up. */
export async function ask(url: string, token: string, question: Question = {}): Promise<Answer | null> {
  const { body, heard, signal = AbortSignal.timeout(ANSWER_MS_MAX) } = question;
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", ...question.headers };
  try {
    const posted = body === undefined ? {} : { method: "POST", body };
    const response = await fetch(url, { headers, signal, ...posted });
    heard?.();
    return { status: response.status, headers: response.headers, text: await response.text() };
  } catch {
    return null;
  }
}
