/** The help text. It fits on one screen. */

export const USAGE = `fanout: send many prompts as one batch, under a run's budget, with results in order

Usage: fanout batch INPUT -o OUTPUT [options]
       fanout batch --cancel -o OUTPUT

INPUT  .jsonl  requests (custom_id, method, url, body), or objects with a prompt or messages
               (and id, model, system, max_tokens, temperature, params), or strings
       .txt    one prompt per line
       .csv    a header with a column "prompt" (and id, model, system)
       -       standard input, with --from jsonl, --from text or --from csv

-o, --output FILE      one answer per input line, in order; a failed line has its error
--format jsonl|csv|text   format of the output; default: by the name of FILE (.csv, .txt)
--raw                  write the batch's output lines unchanged
--model, --system, --max-tokens, --temperature   defaults for prompts without their own
--endpoint PATH        /v1/chat/completions, /v1/completions, /v1/embeddings, /v1/responses
--service-tier batch   through batches of the provider, at their price, within 24 hours
--url URL              gateway; default: FANOUT_URL, OPENAI_BASE_URL, http://127.0.0.1:8787
--token-file FILE      file with the run's token; default: FANOUT_TOKEN (or OPENAI_API_KEY)
--env-file FILE        variables that the environment does not set; default: .dev.vars of a clone
--fresh                start a new batch, even if one is running for this output
--cancel               cancel the batch; the next run of the command writes its answers
--json                 print one object: batch, status, output, completed, failed, causes, run, url,
                       cost_usd, duration_ms
--quiet, -q            print no progress, notes or last line

Ctrl-C leaves the batch running. Running the same command again continues it and pays for nothing
twice: FILE.fanout stores the batch's id. Progress is shown on a terminal only.

Exit status: 0 all lines completed, 1 the command failed, 2 some lines failed,
             3 the input was refused, 4 cancelled or expired, 130 Ctrl-C
`;
