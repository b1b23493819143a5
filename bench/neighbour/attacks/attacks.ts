/** Every attack: what `--only` calls it, and where it is. */
import type { Attack } from "../attack.ts";
import { documents } from "./documents.ts";
import { largeBodies } from "./large-bodies.ts";
import { manyCalls } from "./many-calls.ts";
import { overlappingChunks } from "./overlapping-chunks.ts";
import { ownParams } from "./own-params.ts";
import { followers } from "./followers.ts";
import { logReaders } from "./log-readers.ts";
import { pullClaims } from "./pull-claims.ts";
import { refusedBodies } from "./refused-bodies.ts";
import { retries } from "./retries.ts";
import { sharedParams } from "./shared-params.ts";
import { storedBodies } from "./stored-bodies.ts";
import { subtree } from "./subtree.ts";

export const ATTACKS: Readonly<Record<string, Attack>> = {
  followers,
  "log-readers": logReaders,
  "shared-params": sharedParams,
  subtree,
  "refused-bodies": refusedBodies,
  "own-params": ownParams,
  "large-bodies": largeBodies,
  "many-calls": manyCalls,
  "overlapping-chunks": overlappingChunks,
  documents,
  "pull-claims": pullClaims,
  "stored-bodies": storedBodies,
  retries,
};
