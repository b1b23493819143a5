import type { ComponentChildren } from "preact";
import { credential, signOut } from "../credential.ts";

/** The line on top of every page: where the reader is, and the way to other pages. */
export function PageHeader({ children }: { children: ComponentChildren }) {
  return (
    <header>
      <a href="/ui" class="home">
        fanout
      </a>
      {children}
      <nav aria-label="Pages">
        <a href="/docs">API</a>
        {credential.value !== null && (
          <button type="button" class="quiet" onClick={signOut}>
            Sign out
          </button>
        )}
      </nav>
    </header>
  );
}
