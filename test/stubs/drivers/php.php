<?php

// Drives stubs/php/fanout.php for the conformance test.

require __DIR__ . '/../../../stubs/php/fanout.php';

function write(string|int|float $record): void
{
    fwrite(STDOUT, "$record\x1e");
    fflush(STDOUT);
}

function stream(array $prompts): void
{
    foreach (llm_stream($prompts) as $slot) {
        write("{$slot['index']}\x1f{$slot['result']}");
    }
}

const SCHEMA = ['type' => 'object', 'properties' => ['n' => ['type' => 'integer']], 'required' => ['n']];

const TOOLS = [['type' => 'function', 'function' => ['name' => 'double', 'parameters' => SCHEMA]]];
const MUST = ['tool_choice' => 'required'];

function nameOf(array $message): string
{
    return $message['tool_calls'][0]['function']['name'];
}

function message(string $model, string $prompt): void
{
    $asked = llm_message($prompt, $model, tools: TOOLS, params: MUST);
    $result = ['role' => 'tool', 'tool_call_id' => $asked['tool_calls'][0]['id'], 'content' => '8'];
    $done = ['role' => 'user', 'content' => 'done'];
    $answer = llm_message([['role' => 'user', 'content' => $prompt], $asked, $result, $done], $model);
    write(nameOf($asked) . "\x1f{$answer['content']}");
}

function messages(string $model, string ...$prompts): void
{
    foreach (llm_query_batch($prompts, $model, tools: TOOLS, params: MUST) as $message) {
        write(nameOf($message));
    }
}

function agent(string $model, string $tool, string $prompt): void
{
    write(llm_message($prompt, $model, tools: [$tool], max_turns: 4)['content']);
}

function dag(string $prompt): void
{
    $tasks = [['id' => 'a', 'prompt' => $prompt], ['id' => 'b', 'prompt' => '{{a.output}} and two']];
    write(llm_dag($tasks)['outputs']['b']);
}

function vote(string $count, string $prompt): void
{
    $vote = llm_vote($prompt, (int) $count);
    write("{$vote['winner']}\x1f{$vote['votes']}");
}

function nested(string $prompt): void
{
    with_run(function () use ($prompt) {
        write(llm_query($prompt));
        with_run(fn () => write(llm_query($prompt)), calls: 1);
        write(llm_query($prompt));
    }, calls: 4);
    write(llm_query($prompt));
}

/** PHP runs one thing at a time. */
function children(array $prompts): void
{
    foreach ($prompts as $prompt) {
        write(with_run(fn () => llm_query($prompt), calls: 1));
    }
}

function main(string $command, string ...$arguments): void
{
    match ($command) {
        'query' => write(llm_query(...$arguments)),
        'batch' => array_map('write', llm_query_batch($arguments)),
        'batch-model' => array_map('write', llm_query_batch(array_slice($arguments, 1), $arguments[0])),
        'stream' => stream($arguments),
        'json' => write(llm_query($arguments[0], schema: SCHEMA)['n']),
        'batch-json' => array_map(
            fn ($value) => write(is_array($value) ? $value['n'] : $value),
            llm_query_batch($arguments, schema: SCHEMA),
        ),
        'message' => message(...$arguments),
        'messages' => messages(...$arguments),
        'agent' => agent(...$arguments),
        'dag' => dag(...$arguments),
        'vote' => vote(...$arguments),
        'budget' => write(llm_budget()['usd']['remaining']),
        'usage' => write(llm_usage()['llm_calls']),
        'final' => [llm_final($arguments[0]), write('ok')],
        'log' => [llm_log($arguments[0], [$arguments[1] => $arguments[2]]), write('ok')],
        'tool' => write(tool_call($arguments[0], [$arguments[1] => $arguments[2]])),
        'child' => with_run(
            fn () => array_map(fn ($prompt) => write(llm_query($prompt)), array_slice($arguments, 1)),
            calls: (int) $arguments[0],
        ),
        'nested' => nested($arguments[0]),
        'children' => children($arguments),
    };
}

try {
    main(...array_slice($argv, 1));
} catch (FanoutError $error) {
    $used = "{$error->attempts}\x1f{$error->charged_usd}";
    write("\x15{$error->code}\x1f{$error->status}\x1f" . ($error->retryable ? 'true' : 'false') . "\x1f$used");
}
