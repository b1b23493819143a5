#!/usr/bin/env node
/** `fanout COMMAND`: the program is in cli/. */
import "../cli/main.mjs";
