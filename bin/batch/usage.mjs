/** What `--help` says: all of it on one screen. */

export const USAGE = `fanout: many prompts as one batch, in order and under a run's budget

Usage: fanout batch INPUT -o OUTPUT [options]
       fanout batch --cancel -o OUTPUT

INPUT  .jsonl  requests (custom_id, method, url, body), or objects with a prompt or messages
               (and id, model, system, max_tokens, temperature, params), or strings
       .txt    a prompt on each line
       .csv    a column "prompt" (and id, model, system), named in the first line
       -       standard input, with --from jsonl, --from text or --from csv

-o, --output FILE      the answers, in the input's order; a failed line has its error in its place
--format jsonl|csv|text   how they are written; else FILE's name tells (.csv, .txt)
--raw                  the batch's own output lines instead
--model, --system, --max-tokens, --temperature   for prompts that do not say it themselves
--endpoint PATH        /v1/chat/completions, /v1/completions, /v1/embeddings, /v1/responses
--url URL              the gateway; else FANOUT_URL, OPENAI_BASE_URL, http://127.0.0.1:8787
--token-file FILE      holds the run's token; else FANOUT_TOKEN (OPENAI_BASE_URL: OPENAI_API_KEY)
--fresh                begins a new batch, whatever was begun before
--cancel               stops the batch; what is done is kept, and written by the next start
--quiet, -q            no progress

The same command again goes on with the same batch and pays nothing twice: FILE.fanout remembers it.
Ctrl-C leaves the batch running.

Exit status: 0 all lines completed, 1 the command failed, 2 some lines failed,
             3 the input was refused, 4 cancelled or expired, 130 Ctrl-C
`;
