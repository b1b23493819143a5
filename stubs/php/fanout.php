<?php
// Ask a fanout gateway from PHP 8.0 or newer. One file, no Composer, no curl extension: copy it into the sandbox.
//
//     require_once 'fanout.php';
//     $answer = llm_query('What is 2 + 2?');                       // a string, or a list of chat messages
//     $answers = llm_query_batch(array_map(fn ($page) => "Summarise: $page", $pages), max_tokens: 200);
//     foreach (llm_stream($prompts) as $slot) { echo $slot['index'], $slot['result']; }  // slots as they end
//     llm_budget()['usd']['remaining'];                            // llm_usage(reset: true) also begins to count anew
//     llm_log('execution_result', ['output' => '42']);             // an event of the run's log
//     llm_final(tool_call('search', ['query' => 'fanout']));       // FINAL elsewhere, which is a word of PHP's own
//
// FANOUT_URL names the gateway (default http://127.0.0.1:8787; https needs the openssl extension; no proxy is used),
// FANOUT_TOKEN carries the run token; GATEWAY_URL and GATEWAY_TOKEN stand in for them. FANOUT_TIMEOUT_S is the longest
// silence borne. A named argument is sent as the request field of that name; but `idempotency_key:` names the call, so
// that a restarted program finds the answers that it has paid for. A call that spends is sent again under its key when
// the connection breaks; nothing else is repeated.
declare(strict_types=1);

// A failed call. `code`: one of the gateway's, or no_token, bad_url, unreachable, timeout, bad_answer; `status`: the
// HTTP status, null where there was no answer; `retryable`: the same call may succeed later.
final class FanoutError extends RuntimeException {
    public function __construct($message, public $code, public ?int $status = null, public bool $retryable = false) {
        parent::__construct($message);
    }
}

function llm_query(string|array $prompt, ?string $model = null, mixed ...$options): string {
    $asked = is_array($prompt) ? ['messages' => $prompt] : ['prompt' => $prompt];
    return FanoutGateway::ask('/query', $asked + ['model' => $model] + $options, 'text');
}

// The answers in the order of `$prompts`. A failed one is the string "[error] message" in its place and touches no
// other. Throws only when the whole request fails.
function llm_query_batch(array $prompts, ?string $model = null, mixed ...$options): array {
    $body = ['prompts' => array_values($prompts), 'model' => $model] + $options;
    $results = $prompts === [] ? [] : FanoutGateway::ask('/batch', $body, 'results');
    return count($results) === count($prompts) ? $results : throw new FanoutError('too few results', 'bad_answer', 200);
}
function llm_query_batched(mixed ...$arguments): array { return llm_query_batch(...$arguments); }
function llm_batch(mixed ...$arguments): array { return llm_query_batch(...$arguments); }

// Gives an array for each slot as it ends: its `index`, its `result`, its `error` or null.
function llm_stream(array $prompts, ?string $model = null, mixed ...$options): Generator {
    $given = [];
    $body = ['prompts' => array_values($prompts), 'model' => $model] + $options;
    foreach ($prompts === [] ? [] : FanoutGateway::answers('/batch', $body, true) as $event) {
        if (($event['type'] ?? '') === 'slot' && !isset($given[$event['index']])) {
            yield $given[$event['index']] = $event;
        }
    }
}

function llm_budget(): array { return FanoutGateway::ask('/budget'); }
function llm_usage(bool $reset = false): array { return FanoutGateway::ask($reset ? '/usage?reset=1' : '/usage'); }
function llm_log(string $type, array $fields = []) { FanoutGateway::ask('/log', ['event_type' => $type] + $fields); }
function llm_final(mixed $result) {
    llm_log('final_result', ['output' => is_string($result) ? $result : json_encode($result), 'data' => $result]);
}
function tool_call(string $name, array $input = []): mixed {
    return FanoutGateway::ask('/tool_call', ['tool_name' => $name, 'input' => (object) $input], 'result');
}

final class FanoutLost extends RuntimeException {}
final class FanoutGateway {
    private const ADDRESS = '~^http(s?)://([\w.-]+|\[[\da-f:.]+])(:\d+)?((?:/[!-\~]*)?)$~Di';

    public static function ask(string $path, ?array $body = null, ?string $wanted = null): mixed {
        $answer = self::answers($path, $body)->current();
        $wanted === null || array_key_exists($wanted, $answer) || throw new FanoutError("no $wanted", 'bad_answer');
        return $wanted === null ? $answer : $answer[$wanted];
    }

    // The JSON objects of an answer, of which a stream has many. Begins anew after a loss, which a key permits.
    public static function answers(string $path, ?array $body, bool $streams = false): Generator {
        $key = in_array($path, ['/query', '/batch']) ? $body['idempotency_key'] ?? bin2hex(random_bytes(16)) : null;
        [$address, $request] = self::request($path, $body, $key, $streams);
        foreach ($key === null ? [null] : [0.25, 0.5, 1, 2, null] as $wait_s) {
            try {
                foreach (self::exchange($address, $request, $streams) as $status => $text) {
                    yield $answer = self::understood($text, $status);
                }
                if (!$streams || ($answer['type'] ?? '') === 'group_completed') { return; }
                throw new FanoutLost('the stream was cut');
            } catch (FanoutLost $lost) {
                $wait_s ?? throw new FanoutError("no answer: {$lost->getMessage()}", 'unreachable', null, true);
                usleep((int) ($wait_s * 1e6));
            }
        }
    }

    private static function request(string $path, ?array $body, ?string $key, bool $streams): array {
        $token = self::setting('TOKEN') ?? throw new FanoutError('FANOUT_TOKEN, the run token, is not set', 'no_token');
        preg_match('/^[!-~]+$/D', "$token$key") || throw new ValueError('no header can carry that token or that key');
        $base = self::setting('URL') ?? 'http://127.0.0.1:8787';
        preg_match(self::ADDRESS, $base, $url) || throw new FanoutError("FANOUT_URL is no address: $base", 'bad_url');
        unset($body['idempotency_key']);
        $json = $body ? json_encode(array_filter($body, fn ($value) => $value !== null), JSON_THROW_ON_ERROR) : '';
        $head = ($body ? 'POST ' : 'GET ') . rtrim($url[4], '/') . "$path HTTP/1.1\r\nhost: $url[2]$url[3]\r\n"
            . "connection: close\r\nauthorization: Bearer $token\r\ncontent-type: application/json\r\ncontent-length: "
            . strlen($json) . "\r\naccept: application/" . ($streams ? 'x-ndjson' : 'json') . "\r\n"
            . ($key === null ? '' : "idempotency-key: $key\r\n");
        return [($url[1] ? 'ssl' : 'tcp') . "://$url[2]" . ($url[3] ?: ($url[1] ? ':443' : ':80')), "$head\r\n$json"];
    }

    // One try: yields the status with the whole body, or with each line of a stream.
    private static function exchange(string $address, string $request, bool $streams): Generator {
        $silence_s = (float) (self::setting('TIMEOUT_S') ?? 660);
        $socket = @stream_socket_client($address, $_, $error, $silence_s) ?: throw self::loss($error);
        stream_set_timeout($socket, (int) $silence_s, (int) (fmod($silence_s, 1) * 1e6));
        @fwrite($socket, $request);
        for ($text = $head = ''; !str_ends_with($head, "\r\n\r\n");) { $head .= self::read($socket); }
        $length = preg_match('/^content-length: *(\d+)/im', $head, $found) ? (int) $found[1] : PHP_INT_MAX;
        [$status, $chunked] = [(int) substr($head, 9, 3), preg_match('/^transfer-encoding:.*chunked/im', $head)];
        do {
            $size = $chunked ? (int) hexdec(strtok(self::read($socket), ";\r\n")) : $length;
            for ($left = $size; $left > 0; $left -= strlen($piece)) {
                $text .= $piece = self::read($socket, $left);
                while ($streams && $status === 200 && str_contains($text, "\n")) {
                    [$line, $text] = explode("\n", $text, 2);
                    if (trim($line) !== '') { yield 200 => $line; }
                }
            }
            $chunked && self::read($socket);
        } while ($chunked && $size > 0);
        if (!$streams || $status !== 200 || trim($text) !== '') { yield $status => $text; }
    }

    // A line, or at most `$most` bytes of what has come.
    private static function read($socket, int $most = 0): string {
        $data = (string) ($most ? @fread($socket, min($most, 65536)) : @fgets($socket, 65536));
        if ($most ? $data !== '' : str_ends_with($data, "\n")) { return $data; }
        throw self::loss(stream_get_meta_data($socket)['timed_out'] ? 'timed out' : 'the connection broke');
    }
    private static function loss(string $cause): RuntimeException {
        $silent = stripos($cause, 'timed out') !== false;
        return $silent ? new FanoutError("no answer: $cause", 'timeout', null, true) : new FanoutLost($cause);
    }
    private static function setting(string $name): ?string {
        return trim((string) getenv("FANOUT_$name")) ?: trim((string) getenv("GATEWAY_$name")) ?: null;
    }
    private static function understood(string $text, int $status): array {
        $answer = json_decode($text, true);
        $error = is_array($answer) ? $answer['error'] ?? null : null;
        if (is_array($answer) && $status < 300 && (!$error || ($answer['type'] ?? '') === 'slot')) { return $answer; }
        $status = $status < 400 ? $error['status'] ?? null : $status;
        is_string($error) && throw new FanoutError($error, 'tool_error', $status, in_array($status, [408, 503]));
        is_array($error) || $error = ['message' => "HTTP $status: " . substr($text, 0, 200), 'code' => 'bad_answer'];
        throw new FanoutError("{$error['message']}", $error['code'], $status, ($error['retryable'] ?? false) === true);
    }
}
