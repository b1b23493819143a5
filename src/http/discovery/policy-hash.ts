/** A source of a content security policy that allows one text and no other: the SHA-256 hash of an inline script or style. */
export async function policyHash(text: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return `'sha256-${btoa(String.fromCharCode(...digest))}'`;
}
