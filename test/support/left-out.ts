/** Names tests that this machine cannot run. `.ci/run` installs what they need, and lets nothing be left out. */

/** Writes which tests are left out, if `missing` names a program that is not here. */
export function reportLeftOut(tests: string, missing: string | null): void {
  if (missing !== null) console.error(`LEFT OUT: ${tests}, because this machine has no ${missing}.`);
}
