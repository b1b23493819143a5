/** Every attack: what `--only` calls it, and where it is. */
import type { Attack } from "../attack.ts";
import { followers } from "./followers.ts";
import { logReaders } from "./log-readers.ts";
import { refusedBodies } from "./refused-bodies.ts";
import { sharedParams } from "./shared-params.ts";
import { subtree } from "./subtree.ts";

export const ATTACKS: Readonly<Record<string, Attack>> = {
  followers,
  "log-readers": logReaders,
  "shared-params": sharedParams,
  subtree,
  "refused-bodies": refusedBodies,
};
