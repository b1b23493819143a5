/** The gateway's own secrets, once it is certain that they are strong enough to be used. */
import type { Config } from "../../env.ts";
import type { Reason } from "../../errors.ts";
import { SECRET_CHARS_MIN } from "../../limits.ts";

/** `SIGNING_KEY_PREVIOUS` with this text accepts the tokens of the time without a `SIGNING_KEY`. */
export const DERIVED_KEY = "derived";

/** Usable secrets. Never log or return them. */
export type Credentials = {
  adminKey: string;
  /** null = derived from `adminKey`. */
  signingKey: string | null;
  /** null = no tokens but those of `signingKey` are accepted. */
  signingKeyPrevious: string | null;
  /** null = there are no viewers. */
  viewKey: string | null;
};

/** The secrets of a configuration, or the first that is missing or weak. */
export function credentialsOf(
  config: Pick<Config, "adminKey" | "signingKey" | "signingKeyPrevious" | "viewKey">,
): { ok: true; credentials: Credentials } | { ok: false; reason: Reason } {
  const { adminKey, signingKey, signingKeyPrevious, viewKey } = config;
  if (adminKey === null) return { ok: false, reason: { reason: "missing_secret", variable: "ADMIN_KEY" } };
  const named = {
    ADMIN_KEY: adminKey,
    SIGNING_KEY: signingKey,
    SIGNING_KEY_PREVIOUS: signingKeyPrevious === DERIVED_KEY ? null : signingKeyPrevious,
    VIEW_KEY: viewKey,
  };
  for (const [variable, secret] of Object.entries(named)) {
    if (secret !== null && secret.length < SECRET_CHARS_MIN) return weak(variable, TOO_SHORT);
  }
  const others = [adminKey, signingKey, signingKeyPrevious];
  if (viewKey !== null && others.includes(viewKey)) return weak("VIEW_KEY", "is the same as another secret");
  return { ok: true, credentials: { adminKey, signingKey, signingKeyPrevious, viewKey } };
}

const TOO_SHORT = `has fewer than ${SECRET_CHARS_MIN} characters, so it can be guessed`;

function weak(variable: string, fault: string): { ok: false; reason: Reason } {
  const message = `the secret ${variable} ${fault}; make one with \`openssl rand -hex 32\``;
  return { ok: false, reason: { reason: "missing_secret", variable, message } };
}
