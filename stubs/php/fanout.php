<?php

// Calls a fanout gateway from PHP 8.0 or newer.
//
// One file, no Composer, no curl extension: copy it into the sandbox.
//
//     require_once 'fanout.php';
//
//     $answer = llm_query('What is 2 + 2?');
//     $answers = llm_query_batch(array_map(fn ($page) => "Summarise: $page", $pages), max_tokens: 200);
//     foreach (llm_stream($prompts, 'some-model') as $slot) {
//         echo $slot['index'], $slot['result'];
//     }
//     with_run(function () use ($prompts) { // Calls in this function can spend 0.05 USD at most.
//         return llm_query_batch($prompts);
//     }, usd: 0.05);
//     llm_final(tool_call('search', ['query' => 'fanout']));
//
// Environment variables:
//     FANOUT_URL        the gateway's address (default http://127.0.0.1:8787); or GATEWAY_URL.
//                       https needs the openssl extension. No proxy is used.
//     FANOUT_TOKEN      the run token, which POST /runs returned; or GATEWAY_TOKEN
//     FANOUT_TIMEOUT_S  how long the gateway may be silent before a call fails (default 660)
//
// A named argument is sent as the request field of that name. `idempotency_key:` is sent as a header instead: a
// restarted program that repeats the call under the same key gets the recorded answer at no cost. If the connection is
// lost, the request is repeated under the same key and is paid once. All other retries happen in the gateway.

declare(strict_types=1);

/** A failed call. */
final class FanoutError extends RuntimeException
{
    /**
     * @param string $code the gateway's code, or `no_token`, `bad_url`, `unreachable`, `timeout`, `bad_answer`,
     *     `tool_error`
     * @param ?int $status the HTTP status, or null if there was no answer
     * @param bool $retryable whether the same call may succeed later
     * @param ?int $attempts how often a call was tried that was made
     * @param ?float $charged_usd what these attempts were charged
     */
    public function __construct(
        string $message,
        public $code,
        public ?int $status = null,
        public bool $retryable = false,
        public ?int $attempts = null,
        public ?float $charged_usd = null,
    ) {
        parent::__construct($message);
    }
}

/**
 * Returns the answer to one prompt: a string, or a list of chat messages. With `schema: [...]` the answer is the JSON
 * value that fits it, in batches too.
 */
function llm_query(string|array $prompt, ?string $model = null, mixed ...$options): mixed
{
    $field = is_array($prompt) ? 'messages' : 'prompt';
    $answer = FanoutGateway::call('/query', [$field => $prompt, 'model' => $model] + $options, 'text');
    return array_key_exists('json', $answer) ? $answer['json'] : $answer['text'];
}

/**
 * Returns the whole message of an answer: `content`, `tool_calls`, … With `tools` of a chat completion it may ask for
 * them: sent back as one of the messages, with their results, it goes on. Tools of the run go by their names: the
 * gateway calls them itself, and the message is the last of at most `max_turns` answers.
 */
function llm_message(string|array $prompt, ?string $model = null, mixed ...$options): array
{
    $body = [is_array($prompt) ? 'messages' : 'prompt' => $prompt, 'model' => $model];
    return FanoutGateway::call('/query', $body + FanoutGateway::asking($options), 'message')['message'];
}

/**
 * Returns the answers to many prompts, in the order of `$prompts`, by one request. The result of a failed prompt is the
 * string "[error] message"; the other results are not affected. With `tools` of a chat completion, or `include:
 * ['message']`, the answers are whole messages. Throws only if the whole request fails.
 */
function llm_query_batch(array $prompts, ?string $model = null, mixed ...$options): array
{
    if ($prompts === []) {
        return [];
    }
    $options = FanoutGateway::definesTools($options) ? FanoutGateway::asking($options) : $options;
    $name = in_array('message', $options['include'] ?? [], true) ? 'message' : 'json';
    $body = ['prompts' => array_values($prompts), 'model' => $model] + $options;
    ['results' => $results, 'items' => $slots] = FanoutGateway::call('/batch', $body, 'results');
    if (count($results) !== count($prompts)) {
        $message = sprintf('sent %d prompts, got %d results', count($prompts), count($results));
        throw new FanoutError($message, 'bad_answer', 200);
    }
    $valueOf = fn ($result, $slot) => array_key_exists($name, $slot) ? $slot[$name] : $result;
    return array_map($valueOf, $results, $slots);
}

function llm_query_batched(mixed ...$arguments): array
{
    return llm_query_batch(...$arguments);
}

function llm_batch(mixed ...$arguments): array
{
    return llm_query_batch(...$arguments);
}

/**
 * Yields the results of a batch as its slots end: an array with `index`, `result` and `error` (null if the slot
 * succeeded).
 */
function llm_stream(array $prompts, ?string $model = null, mixed ...$options): Generator
{
    return FanoutGateway::slots(['prompts' => array_values($prompts), 'model' => $model] + $options);
}

/**
 * Returns the answer of a graph, a list of tasks whose prompts refer to each other:
 * `['id' => 'b', 'prompt' => '{{a.output}} …']`. The outputs of its last tasks are in `outputs`, by id.
 */
function llm_dag(array $tasks, mixed ...$options): array
{
    return FanoutGateway::call('/dag', ['tasks' => array_values($tasks)] + $options, 'tasks');
}

/** Asks a prompt `$count` times. Returns the vote: `decided`, `winner`, `agreement`, … `aggregate` changes its rule. */
function llm_vote(string $prompt, int $count = 3, ?string $model = null, mixed ...$options): array
{
    $body = ['prompts' => array_fill(0, $count, $prompt), 'model' => $model] + $options;
    return FanoutGateway::call('/batch', $body + ['aggregate' => ['strategy' => 'vote']], 'aggregation')['aggregation'];
}

/**
 * Opens a child run for a function: calls in the function spend the child's budget.
 *
 *     with_run(fn (array $run) => llm_query_batch($prompts), usd: 0.05, calls: 20, name: 'translate');
 *
 * `usd`, `calls`, `prompt_tokens` and `completion_tokens` are limits. They are reserved in the budget of the run around
 * the function; a limit that is left out becomes an equal split of what remains there. Other arguments are the fields
 * of POST /runs: `name`, `max_parallel`, `models`, `default_model`, …
 *
 * The function receives the child run's document with its `id` and its `token`; its value is returned. When it ends,
 * also by an exception or exit(), the child run is closed and what it has not spent returns. Scopes nest. Each fiber
 * has its own: a new fiber starts outside of all scopes.
 */
function with_run(callable $scope, mixed ...$settings): mixed
{
    $run = FanoutGateway::openRun($settings);
    try {
        $result = FanoutGateway::useToken($run['token'], fn () => $scope($run));
    } catch (Throwable $failure) {
        try {
            FanoutGateway::closeRun($run);
        } catch (FanoutError) {
            // The failure of the function matters more.
        }
        throw $failure;
    }
    FanoutGateway::closeRun($run);
    return $result;
}

/**
 * Returns what is left of the run's budget, child runs included: `usd`, `calls`, `prompt_tokens` and
 * `completion_tokens`, each with `limit`, `spent`, `reserved` and `remaining`.
 */
function llm_budget(): array
{
    return FanoutGateway::call('/budget', null, 'usd');
}

/**
 * Returns what the run itself has used since the last reset, child runs not included: `llm_calls`, `input_tokens`,
 * `output_tokens`, `cost` in USD, `calls_by_model`. What child runs spent is in `llm_budget()`.
 */
function llm_usage(bool $reset = false): array
{
    return FanoutGateway::call($reset ? '/usage?reset=1' : '/usage', null, 'llm_calls');
}

/** Appends an event to the run's log. */
function llm_log(string $type, array $fields = []): void
{
    FanoutGateway::call('/log', ['event_type' => $type] + $fields, 'appended');
}

/** Records the program's result, any JSON value, in the run's log. Its name in other stubs, FINAL, is a word of PHP. */
function llm_final(mixed $result): void
{
    $output = is_string($result) ? $result : json_encode($result);
    llm_log('final_result', ['output' => $output, 'data' => $result]);
}

/** Returns the result of a tool of the run. Sent once, also if the connection is lost: a tool may have effects. */
function tool_call(string $name, array $input = []): mixed
{
    $body = ['tool_name' => $name, 'input' => (object) $input];
    return FanoutGateway::call('/tool_call', $body, 'result')['result'];
}

/** The requests behind the functions above. */
final class FanoutGateway
{
    /** The waits before a request whose connection was lost is repeated. */
    private const RETRY_WAITS_S = [0.25, 0.5, 1, 2];

    /** The default is longer than the gateway's own limit, so that its error message arrives. */
    private const TIMEOUT_S = 660;

    /** The gateway recognises these requests by their idempotency key. */
    private const REPEATABLE = '~^/(query|batch|dag|runs|runs/[^/]+/close)$~D';

    private const BUDGET_FIELDS = ['usd', 'calls', 'prompt_tokens', 'completion_tokens'];

    /** The scheme's s, the host, the port and the path. */
    private const ADDRESS = '~^http(s?)://([\w.-]+|\[[\da-f:.]+])(:\d+)?((?:/[!-\~]*)?)$~Di';

    /** The name of this life of the program, so that a run that records can replay the one before. */
    private static ?string $epoch = null;

    /** The tokens of child runs by the fiber whose scopes they are. */
    private static ?WeakMap $tokens = null;

    /** The key of what runs in no fiber. */
    private static ?stdClass $main = null;

    /** The child runs that are open: the token that opened each, and the process, by the run's id. */
    private static array $open_runs = [];

    private static bool $closes_at_exit = false;

    /** Returns the answer, an object with the field `$expects`. */
    public static function call(string $path, ?array $body, string $expects): array
    {
        $request = self::prepare($path, $body, 'application/json');
        $answer = self::answers($request)->current();
        if (!array_key_exists($expects, $answer)) {
            throw new FanoutError("the answer has no field $expects", 'bad_answer', 200);
        }
        return $answer;
    }

    /** The request is prepared at once, with the token of this scope. It is sent when the first slot is needed. */
    public static function slots(array $body): Generator
    {
        $is_empty = $body['prompts'] === [];
        return self::distinctSlots($is_empty ? null : self::prepare('/batch', $body, 'application/x-ndjson'));
    }

    /** Whether the tools are definitions for the model; tools of the run go by their names. */
    public static function definesTools(array $options): bool
    {
        return array_filter($options['tools'] ?? [], fn ($tool) => !is_string($tool)) !== [];
    }

    /** The options of a call that asks for the whole message. */
    public static function asking(array $options): array
    {
        $options['include'] = array_values(array_unique(['message', ...$options['include'] ?? []]));
        if (self::definesTools($options)) {
            $options['params'] = ['tools' => $options['tools']] + ($options['params'] ?? []);
            unset($options['tools']);
        }
        return $options;
    }

    public static function openRun(array $settings): array
    {
        $limits = array_intersect_key($settings, array_flip(self::BUDGET_FIELDS));
        $fields = array_diff_key($settings, $limits);
        if ($limits !== []) {
            $fields['budget'] = $limits + ($fields['budget'] ?? []);
        }
        if (!self::$closes_at_exit) {
            // Neither `catch` nor `finally` sees that a scope calls exit().
            self::$closes_at_exit = true;
            register_shutdown_function(fn () => self::closeOpenRuns());
        }
        $run = self::call('/runs', $fields, 'token');
        self::$open_runs[$run['id']] = [self::$tokens[self::fiber()] ?? null, getmypid()];
        return $run;
    }

    public static function closeRun(array $run): void
    {
        unset(self::$open_runs[$run['id']]);
        self::call("/runs/{$run['id']}/close", [], 'status');
    }

    private static function closeOpenRuns(): void
    {
        foreach (array_reverse(self::$open_runs) as $id => [$token, $process]) {
            // A forked process leaves the runs of its parent open.
            if ($process === getmypid()) {
                try {
                    self::useToken($token, fn () => self::closeRun(['id' => $id]));
                } catch (FanoutError) {
                    // Why the program ends matters more.
                }
            }
        }
    }

    /** Calls the function with this token as the one that requests of the current fiber carry. */
    public static function useToken(?string $token, callable $scope): mixed
    {
        self::$tokens ??= new WeakMap();
        $fiber = self::fiber();
        $outer = self::$tokens[$fiber] ?? null;
        self::$tokens[$fiber] = $token;
        try {
            return $scope();
        } finally {
            self::$tokens[$fiber] = $outer;
        }
    }

    private static function fiber(): object
    {
        self::$main ??= new stdClass();
        // Fibers came with PHP 8.1.
        return (class_exists('Fiber', false) ? Fiber::getCurrent() : null) ?? self::$main;
    }

    /** Yields each slot once, although a repeated request streams all slots again. */
    private static function distinctSlots(?array $request): Generator
    {
        $seen = [];
        foreach ($request === null ? [] : self::answers($request) as $event) {
            if (($event['type'] ?? '') === 'slot' && !isset($seen[$event['index']])) {
                $seen[$event['index']] = true;
                yield $event;
            }
        }
    }

    /** Yields the JSON objects of the answer, of which a stream has many. Repeats a request that was lost. */
    private static function answers(array $request): Generator
    {
        $waits_s = $request['key'] === null ? [] : self::RETRY_WAITS_S;
        while (true) {
            try {
                foreach (self::exchange($request) as $status => $text) {
                    $answer = self::parse($text, $status);
                    yield $answer;
                }
                if (!$request['streams'] || ($answer['type'] ?? '') === 'group_completed') {
                    return;
                }
                throw new FanoutConnectionLost('the stream was cut');
            } catch (FanoutConnectionLost $lost) {
                if ($waits_s === []) {
                    throw new FanoutError("no answer: {$lost->getMessage()}", 'unreachable', null, true);
                }
                usleep((int) (array_shift($waits_s) * 1e6));
            }
        }
    }

    /** Returns the address to connect to, the bytes to send, and what the answer is. */
    private static function prepare(string $path, ?array $body, string $accept): array
    {
        // With the /v1 that OpenAI's clients want, it is the same gateway.
        $base = preg_replace('~(/v1)?/*$~', '', self::setting('URL') ?? 'http://127.0.0.1:8787', 1);
        if (!preg_match(self::ADDRESS, $base, $url)) {
            throw new FanoutError("FANOUT_URL is not an http(s) address: $base", 'bad_url');
        }
        [, $secure, $host, $port, $prefix] = $url;
        $token = self::$tokens[self::fiber()] ?? self::setting('TOKEN');
        if ($token === null) {
            throw new FanoutError('FANOUT_TOKEN is not set: it is the run token', 'no_token');
        }
        $headers = ["host: $host$port", 'connection: close', "authorization: Bearer $token", "accept: $accept"];
        $headers[] = 'x-fanout-epoch: ' . (self::$epoch ??= bin2hex(random_bytes(16)));
        $key = null;
        $json = '';
        if ($body !== null) {
            if (preg_match(self::REPEATABLE, $path)) {
                $key = $body['idempotency_key'] ?? bin2hex(random_bytes(16));
                unset($body['idempotency_key']);
                $headers[] = "idempotency-key: $key";
            }
            $fields = array_filter($body, fn ($value) => $value !== null);
            $json = json_encode((object) $fields, JSON_THROW_ON_ERROR);
            array_push($headers, 'content-type: application/json', 'content-length: ' . strlen($json));
        }
        if (preg_match('/[^ -~]/', implode('', $headers))) {
            throw new ValueError('no header can carry that token or that key');
        }
        $method = $body === null ? 'GET' : 'POST';
        $target = rtrim($prefix, '/') . $path;
        return [
            'address' => ($secure ? 'ssl' : 'tcp') . "://$host" . ($port ?: ($secure ? ':443' : ':80')),
            'bytes' => "$method $target HTTP/1.1\r\n" . implode("\r\n", $headers) . "\r\n\r\n$json",
            'key' => $key,
            'streams' => $accept === 'application/x-ndjson',
        ];
    }

    /** Sends the request once. Yields the status with the whole body, or with each line of a stream. */
    private static function exchange(array $request): Generator
    {
        $socket = self::connect($request['address']);
        @fwrite($socket, $request['bytes']);
        $head = '';
        while (!str_ends_with($head, "\r\n\r\n")) {
            $head .= self::readLine($socket);
        }
        $status = (int) substr($head, 9, 3);
        $streams = $request['streams'] && $status === 200;
        $text = '';
        foreach (self::pieces($socket, $head) as $piece) {
            $text .= $piece;
            while ($streams && str_contains($text, "\n")) {
                [$line, $text] = explode("\n", $text, 2);
                if (trim($line) !== '') {
                    yield $status => $line;
                }
            }
        }
        if (!$streams || trim($text) !== '') {
            yield $status => $text;
        }
    }

    /** @return resource */
    private static function connect(string $address)
    {
        $timeout_s = (float) (self::setting('TIMEOUT_S') ?? self::TIMEOUT_S);
        $socket = @stream_socket_client($address, $_, $error, $timeout_s);
        if ($socket === false) {
            throw self::lost($error);
        }
        stream_set_timeout($socket, (int) $timeout_s, (int) (fmod($timeout_s, 1) * 1e6));
        return $socket;
    }

    /** Yields the body in pieces, as they come. */
    private static function pieces($socket, string $head): Generator
    {
        if (preg_match('/^transfer-encoding:.*chunked/im', $head)) {
            do {
                $size = (int) hexdec(trim(explode(';', self::readLine($socket))[0]));
                yield from self::bytes($socket, $size);
                self::readLine($socket);
            } while ($size > 0);
        } elseif (preg_match('/^content-length: *(\d+)/im', $head, $length)) {
            yield from self::bytes($socket, (int) $length[1]);
        } else {
            throw new FanoutConnectionLost('the answer has no length');
        }
    }

    private static function bytes($socket, int $count): Generator
    {
        while ($count > 0) {
            $piece = (string) @fread($socket, min($count, 65536));
            if ($piece === '') {
                throw self::lost(self::cause($socket));
            }
            $count -= strlen($piece);
            yield $piece;
        }
    }

    private static function readLine($socket): string
    {
        $line = (string) @fgets($socket, 65536);
        if (!str_ends_with($line, "\n")) {
            throw self::lost(self::cause($socket));
        }
        return $line;
    }

    private static function cause($socket): string
    {
        return stream_get_meta_data($socket)['timed_out'] ? 'timed out' : 'the connection broke';
    }

    private static function lost(string $cause): RuntimeException
    {
        if (stripos($cause, 'timed out') !== false) {
            return new FanoutError("no answer: $cause", 'timeout', null, true);
        }
        return new FanoutConnectionLost($cause);
    }

    private static function setting(string $name): ?string
    {
        foreach (["FANOUT_$name", "GATEWAY_$name"] as $variable) {
            $value = trim((string) getenv($variable));
            if ($value !== '') {
                return $value;
            }
        }
        return null;
    }

    /** Returns the JSON object in an answer. Throws the failure that it reports. */
    private static function parse(string $text, int $status): array
    {
        $answer = json_decode($text, true);
        $error = is_array($answer) ? $answer['error'] ?? null : null;
        // A slot of a stream reports its own error as data.
        $is_good = $error === null || ($answer['type'] ?? '') === 'slot';
        if (is_array($answer) && $status < 300 && $is_good) {
            return $answer;
        }
        $http_status = $status < 400 ? null : $status;
        if (is_array($error)) {
            $http_status ??= $error['status'] ?? null;
            $retryable = ($error['retryable'] ?? false) === true;
            $used = [$error['attempts'] ?? null, $error['charged_usd'] ?? null];
            throw new FanoutError($error['message'], $error['code'], $http_status, $retryable, ...$used);
        }
        if (is_string($error)) {
            throw new FanoutError($error, 'tool_error', $http_status, in_array($status, [408, 503], true));
        }
        $message = "HTTP $status, unexpected answer: " . substr($text, 0, 200);
        throw new FanoutError($message, 'bad_answer', $http_status);
    }
}

/** The connection broke before the whole answer. */
final class FanoutConnectionLost extends RuntimeException
{
}
