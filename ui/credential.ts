/**
 * The credential of this page: typed, or in the address as `#token=…`. A fragment is not sent to any server; it is taken out
 * of the address at once, so that it is in no screenshot and no bookmark. It is kept for this tab, so that a reload works.
 */
import { signal } from "@preact/signals";

const KEY = "fanout-credential";

export const credential = signal<string | null>(read());

export function signIn(value: string): void {
  sessionStorage.setItem(KEY, value);
  credential.value = value;
}

export function signOut(): void {
  sessionStorage.removeItem(KEY);
  credential.value = null;
}

function read(): string | null {
  // A file has no gateway to sign in to, and a browser may give it no storage.
  if (!location.protocol.startsWith("http")) return null;
  const inFragment = new URLSearchParams(location.hash.slice(1)).get("token");
  if (inFragment === null || inFragment === "") return sessionStorage.getItem(KEY);
  history.replaceState(null, "", location.pathname + location.search);
  sessionStorage.setItem(KEY, inFragment);
  return inFragment;
}
