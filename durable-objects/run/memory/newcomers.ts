/** The runs of this isolate that are new at their gates: they share what they begin with, and what gates have told any of them. */
import { Newcomers } from "../../../src/run/gates/newcomers.ts";

export const isolateNewcomers = new Newcomers();
