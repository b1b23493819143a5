/** One request to a gateway that may die under it. */

export type Answer = { status: number; headers: Headers; text: string };

export type Question = {
  /** JSON text: posted if given. */
  body?: string;
  headers?: Record<string, string>;
  /** Called when the status has arrived. */
  heard?: () => void;
};

/** Null when the gateway was not there, or not until the answer's end. */
export async function ask(url: string, token: string, { body, headers, heard }: Question = {}): Promise<Answer | null> {
  const known = { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers };
  try {
    const response = await fetch(
      url,
      body === undefined ? { headers: known } : { method: "POST", headers: known, body },
    );
    heard?.();
    return { status: response.status, headers: response.headers, text: await response.text() };
  } catch {
    return null;
  }
}
