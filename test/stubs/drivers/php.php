<?php
// Drives stubs/php/fanout.php for the conformance test.
require __DIR__ . '/../../../stubs/php/fanout.php';

function write(string|int|float $record): void {
    fwrite(STDOUT, "$record\x1e");
    fflush(STDOUT);
}

function stream(array $prompts): void {
    foreach (llm_stream($prompts) as $slot) {
        write("{$slot['index']}\x1f{$slot['result']}");
    }
}

$arguments = array_slice($argv, 1);
$command = array_shift($arguments);
try {
    match ($command) {
        'query' => write(llm_query(...$arguments)),
        'batch' => array_map('write', llm_query_batch($arguments)),
        'batch-model' => array_map('write', llm_query_batch(array_slice($arguments, 1), $arguments[0])),
        'stream' => stream($arguments),
        'budget' => write(llm_budget()['usd']['remaining']),
        'usage' => write(llm_usage()['llm_calls']),
        'final' => [llm_final($arguments[0]), write('ok')],
        'log' => [llm_log($arguments[0], [$arguments[1] => $arguments[2]]), write('ok')],
        'tool' => write(tool_call($arguments[0], [$arguments[1] => $arguments[2]])),
    };
} catch (FanoutError $error) {
    write("\x15{$error->code}\x1f{$error->status}\x1f" . ($error->retryable ? 'true' : 'false'));
}
