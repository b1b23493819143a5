/** Languages whose blocks are run: how a program in one is started from the page's shell, and what that takes. */

export type Program = { extension: string; command: string; tool: string };

/** null = typed into the shell itself. */
export const LANGUAGES: ReadonlyMap<string, Program | null> = new Map([
  ["sh", null],
  ["bash", { extension: "bash", command: "bash -eu", tool: "bash" }],
  ["python", { extension: "py", command: "python3", tool: "python3" }],
  ["js", { extension: "mjs", command: "node", tool: "node" }],
  ["javascript", { extension: "mjs", command: "node", tool: "node" }],
  ["ts", { extension: "mts", command: "node", tool: "node" }],
  ["typescript", { extension: "mts", command: "node", tool: "node" }],
  ["ruby", { extension: "rb", command: "ruby", tool: "ruby" }],
  ["perl", { extension: "pl", command: "perl", tool: "perl" }],
  ["php", { extension: "php", command: "php", tool: "php" }],
  ["lua", { extension: "lua", command: "lua5.4", tool: "lua5.4" }],
  ["r", { extension: "R", command: "Rscript", tool: "Rscript" }],
]);

/** Commands that pages type and a machine may lack. */
export const TYPED_TOOLS = ["curl", "jq", "python3", "deno"];
