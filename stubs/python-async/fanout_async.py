"""Calls a fanout gateway from asyncio, Python 3.8 or newer.

One file, standard library only: copy it into the sandbox.

    from fanout_async import llm_query, llm_query_batch, with_run

    answers = await asyncio.gather(*[llm_query("Summarise: " + page) for page in pages])
    answers = await llm_query_batch(["Summarise: " + page for page in pages], max_tokens=200)
    async with with_run(usd=0.05):  # Calls in this block can spend 0.05 USD at most.
        answers = await llm_query_batch(["Translate: " + page for page in pages])

Environment variables:
    FANOUT_URL        the gateway's address (default http://127.0.0.1:8787); or GATEWAY_URL
    FANOUT_TOKEN      the run token, which POST /runs returned; or GATEWAY_TOKEN
    FANOUT_TIMEOUT_S  how long the gateway may be silent before a call fails (default 660)

A keyword argument is sent as the request field of that name; with `schema` an answer is
the JSON value that fits it, not its text. `idempotency_key` is sent as
a header instead: a restarted program that repeats the call under the same key gets the
recorded answer at no cost. If the connection is lost, the request is repeated under the
same key and is paid once. All other retries happen in the gateway.

Ctrl-C cancels the queued calls of all requests; those in flight end, and a line on
standard error says what was answered and spent, and how to continue. A request with a key
of its own goes on. A second Ctrl-C waits for nothing.

A task that is cancelled closes its connection. Proxies are not used.
"""

import asyncio
import collections.abc
import contextlib
import contextvars
import json
import os
import re
import secrets
import signal
import socket
import struct
import sys
import threading
import weakref

__all__ = [
    "FanoutError",
    "LazyQuery",
    "llm_query",
    "llm_message",
    "llm_query_batch",
    "batch_llm_query",
    "rlm_query",
    "allm_query",
    "llm_query_batched",
    "llm_batch",
    "rlm_query_batched",
    "allm_query_batch",
    "llm_stream",
    "llm_dag",
    "llm_context",
    "llm_map",
    "llm_retry",
    "llm_cancel",
    "llm_vote",
    "with_run",
    "llm_budget",
    "llm_usage",
    "tool_call",
    "llm_log",
    "FINAL",
]

# The waits before a request whose connection was lost is repeated.
_RETRY_WAITS_S = (0.25, 0.5, 1, 2)

# The default is longer than the gateway's own limit, so that its error message arrives.
_TIMEOUT_S = 660

# Calls at once in an event loop: each has a connection, and thus an open file.
_CONNECTIONS_MAX = 256

# How long Ctrl-C waits for the end of calls in flight, at most.
_CANCEL_WAIT_S = 60

_BUDGET_FIELDS = ("usd", "calls", "prompt_tokens", "completion_tokens")

# Names this life of the program, so that a run that records can replay the one before.
_EPOCH = secrets.token_hex(16)

# The token of the child run in whose `with_run` block this task is.
_child_token = contextvars.ContextVar("fanout_child_token", default=None)

# The semaphore of each event loop.
_connections = weakref.WeakKeyDictionary()


class FanoutError(Exception):
    """A failed call.

    code: the gateway's code, or `no_token`, `bad_url`, `unreachable`, `timeout`,
        `bad_answer`, `tool_error`
    status: the HTTP status, or None if there was no answer
    retryable: whether the same call may succeed later
    attempts, charged_usd: what a call has used up that was made; else None
    """

    def __init__(
        self,
        message,
        code="bad_answer",
        status=None,
        retryable=False,
        attempts=None,
        charged_usd=None,
    ):
        super().__init__(message)
        self.code = code
        self.status = status
        self.retryable = retryable
        self.attempts = attempts
        self.charged_usd = charged_usd


class LazyQuery(collections.abc.Coroutine):
    """A call that is sent when it is first awaited or made a task.

    It can be awaited again, also by several tasks: each gets the same answer.
    """

    def __init__(self, fields):
        self._fields = fields
        self._answer = None  # A future, once the call is sent.
        self._steps = weakref.WeakKeyDictionary()

    @property
    def is_sent(self):
        return self._answer is not None and not self._answer.cancelled()

    def __await__(self):
        if not self.is_sent:
            call = _call("/query", self._fields, expects="text")
            self._answer = asyncio.ensure_future(call)
        answer = yield from self._answer
        return answer.get("json", answer["text"])

    # A task drives a coroutine by `send` and `throw`. Each task has steps of its own.
    def send(self, value):
        return self._own_steps().send(value)

    def throw(self, *error):
        return self._own_steps().throw(*error)

    def _own_steps(self):
        return self._steps.setdefault(asyncio.current_task(), self.__await__())


def llm_query(prompt, model=None, **params):
    """Returns an awaitable for the answer to one prompt.

    The prompt is a string, or a list of chat messages. Nothing is sent before the call is
    awaited or made a task. Raises FanoutError if the call fails.
    """
    return LazyQuery({**_item(prompt), **_optional(model=model), **params})


async def llm_message(messages_or_prompt, model=None, tools=None, **params):
    """Returns the whole message of an answer as a dict: `content`, `tool_calls`, …

    `tools` are those of a chat completion: sent back as one of `messages`, with the
    results of its tools, the message goes on. Or they are names of tools of the run, which
    the gateway calls itself. Raises FanoutError if the call fails.
    """
    asked = {**_optional(model=model), **_asking(params, tools)}
    answer = await _call(
        "/query", {**_item(messages_or_prompt), **asked}, expects="message"
    )
    return answer["message"]


async def llm_query_batch(prompts, model=None, tools=None, **options):
    """Returns the answers to many prompts, in the order of `prompts`, by one request.

    The result of a failed prompt is the string "[error] message"; the other results are
    not affected. With `tools` of a chat completion, or `include=["message"]`, the answers
    are whole messages, as of llm_message. Raises FanoutError only if the whole request
    fails.
    """
    if tools is not None and _are_names(tools):
        options = {**options, "tools": tools}
    elif tools is not None:
        options = _asking(options, tools)
    slots = await _slots(prompts, model, options)
    name = "message" if "message" in options.get("include", ()) else "json"
    return [slot.get(name, slot["result"]) for slot in slots]


async def _slots(prompts, model, options):
    events = [event async for event in llm_stream(prompts, model, **options)]
    slots = [event for event in events if event["type"] == "slot"]
    return sorted(slots, key=lambda slot: slot["index"])


async def batch_llm_query(*queries):
    """Returns the answers to strings and `llm_query(…)`s, as llm_query_batch does.

    The queries that are not sent yet are sent as one batch. Awaited afterwards, each of
    them returns its answer or raises its error.
    """
    queries = [q if isinstance(q, LazyQuery) else llm_query(q) for q in queries]
    unsent = [query for query in dict.fromkeys(queries) if not query.is_sent]
    items = [query._fields for query in unsent]
    batch = asyncio.ensure_future(_slots(items, None, {"error_style": "settled"}))

    async def answer_at(index):
        slot = (await batch)[index]
        if slot["error"]:
            raise _failure(slot, slot["error"].get("status"))
        return {**slot, "text": slot["result"]["value"]}

    for index, query in enumerate(unsent):
        query._answer = asyncio.ensure_future(answer_at(index))
    results = []
    for answer in await asyncio.gather(
        *[query._answer for query in queries], return_exceptions=True
    ):
        if isinstance(answer, FanoutError):
            results.append(f"[error] {answer}")
        elif isinstance(answer, BaseException):
            raise answer
        else:
            results.append(answer.get("json", answer["text"]))
    await batch  # Raises if the request failed as a whole.
    return results


# The names that other systems use.
rlm_query = allm_query = llm_query
llm_query_batched = llm_batch = rlm_query_batched = allm_query_batch = llm_query_batch


async def llm_stream(prompts, model=None, **options):
    """Yields the results of a batch as its slots end, each slot once.

    An event is a dict: `"type": "slot"` with `index`, `result` and `error` (None if the
    slot succeeded). The last event has `"type": "group_completed"`.
    """
    # A string is a sequence too: each letter would become a paid call.
    if isinstance(prompts, (str, bytes, dict)):
        kind = type(prompts).__name__
        raise TypeError("prompts must be a list of prompts, not one " + kind)
    prompts = list(prompts)
    if not prompts:
        return
    if all(isinstance(prompt, str) for prompt in prompts):
        fields = {"prompts": prompts}
    else:
        items = [_item(each, f"prompts[{i}]") for i, each in enumerate(prompts)]
        fields = {"items": items}
    fields = {**fields, **_optional(model=model), **options}
    async for event in _exchange("/batch", fields, last="group_completed"):
        if event["type"] == "group_completed":
            _say_narrowed(event)
        yield event


async def llm_dag(tasks, **options):
    """Returns the answer of a graph: tasks (dicts) whose prompts refer to each other.

    graph = await llm_dag([{"id": "a", "prompt": "…"}, {"id": "b", "prompt": "{{a.output}}"}])
    graph["outputs"]["b"]
    """
    return await _call("/dag", {"tasks": list(tasks), **options}, expects="tasks")


async def llm_context(text, name=None):
    """Stores a text in the run and returns its id, which calls name as `context`.

    The same text has the same id. The gateway puts it before each prompt; the requests of
    this program stay short.
    """
    answer = await _call(
        "/contexts", {"text": text, **_optional(name=name)}, expects="id"
    )
    return answer["id"]


async def llm_map(
    context, prompt, size=8000, by="chars", overlap=0, model=None, **options
):
    """Returns the answers to a prompt about each chunk of a text, in the text's order.

        notes = await llm_map(book, "List the names in this part: {{chunk}}", size=20000)

    context: a text, or the id of one. prompt: has `{{chunk}}` where a chunk goes. size: the
    most characters of a chunk. by: `chars`, `lines`, `paragraphs` or `markdown`.
    overlap: the most characters that a chunk repeats of the one before.
    """
    if not re.fullmatch("ctx_[0-9a-f]{32}", context):
        context = await llm_context(context)
    over = {"context": context, "split": {"by": by, "size": size, "overlap": overlap}}
    fields = {"over": over, "prompt": prompt, **_optional(model=model), **options}
    answer = await _call("/batch", fields, expects="results")
    _say_narrowed(answer)
    return answer["results"]


async def llm_retry(group):
    """Makes the calls of a group again that did not complete; the others keep their answers.

    Returns the answer of the new group, with all results.
    """
    return await _call(f"/groups/{group}/retry", {}, expects="results")


async def llm_cancel(group, in_flight="end", wait_s=0):
    """Cancels the queued calls of a group, by its id or by the key of its request.

    Calls in flight end and cost what they cost; with `in_flight="abort"` they are aborted
    and stay charged at their reservation. `wait_s`: how long to wait for their end, up to
    60. Returns `groups` (0 = there is none), `counts` and `spent_usd`.
    """
    names = "ids" if re.fullmatch(r"pg-\d+-\w+", group) else "idempotency_keys"
    fields = {names: [group], "in_flight": in_flight, "wait_ms": int(wait_s * 1000)}
    return await _call("/groups/cancel", fields, expects="counts")


async def llm_vote(prompt, n=3, model=None, **options):
    """Asks a prompt `n` times. Returns the vote: `decided`, `winner`, `agreement`, …

    `aggregate` changes the rule, such as `{"strategy": "vote", "rule": "unanimous"}`.
    """
    fields = {"items": [_item(prompt)] * n, **_optional(model=model)}
    fields = {**fields, "aggregate": {"strategy": "vote"}, **options}
    return (await _call("/batch", fields, expects="aggregation"))["aggregation"]


@contextlib.asynccontextmanager
async def with_run(**settings):
    """Opens a child run for a block: calls that the block awaits spend the child's budget.

        async with with_run(usd=0.05, calls=20, name="translate") as run:
            answers = await llm_query_batch(prompts)

    `usd`, `calls`, `prompt_tokens` and `completion_tokens` are limits. They are reserved
    in the budget of the run around the block; a limit that is left out becomes an equal
    split of what remains there. Other arguments are the fields of POST /runs: `name`,
    `max_parallel`, `models`, `default_model`, …

    The value is the child run's document with its `id` and its `token`. When the block
    ends, also by an exception, the child run is closed and what it has not spent returns.

    Blocks nest. Each task has its own; a task that is created in a block is in it, and
    must be awaited there.
    """
    fields = {name: settings[name] for name in settings if name not in _BUDGET_FIELDS}
    limits = {name: settings[name] for name in settings if name in _BUDGET_FIELDS}
    if limits:
        fields["budget"] = {**fields.get("budget", {}), **limits}
    run = await _call("/runs", fields, expects="token")
    close_path = f"/runs/{run['id']}/close"
    outer = _child_token.set(run["token"])
    try:
        yield run
    except BaseException:
        _child_token.reset(outer)
        with contextlib.suppress(
            FanoutError
        ):  # The block's own exception matters more.
            await _call(close_path, {}, expects="status")
        raise
    _child_token.reset(outer)
    await _call(close_path, {}, expects="status")


async def llm_budget():
    """Returns what is left of the run's budget, child runs included.

    `usd`, `calls`, `prompt_tokens` and `completion_tokens`, each with `limit`, `spent`,
    `reserved` and `remaining`. The limit of an open child run is `reserved`; what a
    closed one has spent is `spent`.
    """
    return await _call("/budget", expects="usd")


async def llm_usage(reset=False):
    """Returns what the run itself has used since the last reset: child runs not included.

    `llm_calls`, `input_tokens`, `output_tokens`, `cost` in USD, `calls_by_model`. What
    child runs spent is in `llm_budget()`.
    """
    return await _call("/usage?reset=1" if reset else "/usage", expects="llm_calls")


async def tool_call(tool_name, **input):
    """Returns the result of a tool of the run.

    Sent once, also if the connection is lost: a tool may have effects.
    """
    fields = {"tool_name": tool_name, "input": input}
    return (await _call("/tool_call", fields, expects="result"))["result"]


async def llm_log(event_type, **fields):
    """Appends an event to the run's log.

    Fields: `code`, `output`, `hasError`, `reasoning`, `usage`, `timestamps`, `step`,
    `data`.
    """
    await _call("/log", {**fields, "event_type": event_type}, expects="appended")


async def FINAL(x):
    """Records the program's result, any JSON value, as `final_result` in the run's log."""
    output = x if isinstance(x, str) else json.dumps(x)
    await llm_log("final_result", output=output, data=x)


def _are_names(tools):
    """Whether these are tools of the run, which go by their names."""
    return all(isinstance(tool, str) for tool in tools)


def _asking(params, tools):
    """Returns the fields of a call that asks for the whole message, and sends tools."""
    include = [
        "message",
        *(each for each in params.get("include", ()) if each != "message"),
    ]
    if tools is None:
        return {**params, "include": include}
    if _are_names(tools):
        return {**params, "include": include, "tools": tools}
    sent = {**params.get("params", {}), "tools": tools}
    return {**params, "include": include, "params": sent}


def _item(prompt, name="prompt"):
    if isinstance(prompt, dict):
        return prompt
    if isinstance(prompt, (str, list)):
        return {"prompt" if isinstance(prompt, str) else "messages": prompt}
    # A table's empty cell is NaN, which JSON does not have.
    message = f"{name} is {prompt!r:.40}, not a string, a list of messages or a dict"
    raise TypeError(message)


def _optional(**fields):
    return {name: value for name, value in fields.items() if value is not None}


async def _call(path, fields=None, *, expects):
    """Returns the answer, an object with the field `expects`."""
    loop = asyncio.get_running_loop()
    if loop not in _connections:
        _connections[loop] = asyncio.Semaphore(_CONNECTIONS_MAX)
    async with _connections[loop]:
        (answer,) = [answer async for answer in _exchange(path, fields)]
    if expects not in answer:
        raise _failure(answer)
    return answer


async def _exchange(path, fields=None, last=None):
    """Yields the gateway's answer, or the events of a stream up to the type `last`.

    If the connection is lost, the request is repeated under the same idempotency key,
    where the gateway knows one.
    """
    own_key = (fields or {}).get("idempotency_key")
    key = own_key or secrets.token_hex(16)
    if not re.fullmatch("/query|/batch|/dag", path):
        async for answer in _repeated(path, fields, last, key):
            yield answer
        return
    # While it ends, the program begins nothing new.
    await _interrupts.ended()
    with _interrupts.watching(key, own_key is not None):
        try:
            async for answer in _repeated(path, fields, last, key):
                await _interrupts.ended()
                yield answer
        except FanoutError:
            await _interrupts.ended()
            raise


class _Interrupts:
    """The requests under way in which Ctrl-C cancels what is queued."""

    def __init__(self):
        self._open = {}  # The token and whether the key is the program's own, by key.
        self._before = None  # What handles Ctrl-C otherwise.
        self._ending = None

    @contextlib.contextmanager
    def watching(self, key, is_own):
        self._open[key] = (_token(), is_own)
        self._watch()
        try:
            yield
        finally:
            self._open.pop(key, None)
            if not self._open:
                self._unwatch()

    async def ended(self):
        if self._ending is not None:
            await asyncio.shield(self._ending)

    def _watch(self):
        is_main = threading.current_thread() is threading.main_thread()
        before = signal.getsignal(signal.SIGINT) if is_main else None
        if self._before is None and callable(before):
            self._before, loop = before, asyncio.get_running_loop()
            end = lambda: setattr(self, "_ending", loop.create_task(self._end()))

            def interrupted(number, frame):
                # A second Ctrl-C waits for nothing.
                self._unwatch()
                loop.call_soon_threadsafe(end)

            self._handler = interrupted
            signal.signal(signal.SIGINT, interrupted)

    def _unwatch(self):
        if self._before is not None:
            if signal.getsignal(signal.SIGINT) is self._handler:
                signal.signal(signal.SIGINT, self._before)
            self._before = None

    async def _end(self):
        try:
            print("fanout: interrupted. " + await self._cancelled(), file=sys.stderr)
        finally:
            self._ending = None
            signal.raise_signal(signal.SIGINT)

    async def _cancelled(self):
        """Cancels the requests that Ctrl-C has interrupted; returns what became of them."""
        keys, own = {}, []
        for key, (token, is_own) in self._open.items():
            if is_own:
                own.append(key)
            else:
                keys.setdefault(token, []).append(key)
        lines = []
        try:
            replies = [_cancel(token, names) for token, names in keys.items()]
            done = await asyncio.gather(*replies)
            lines += [_ended_line(done)] if done else []
        except FanoutError as cause:
            lines.append(f"Its calls go on ({cause}).")
        if own:
            again = f"the same call with idempotency_key={own[0]!r} returns its answers"
            stop = f"llm_cancel({own[0]!r}) stops it"
            lines.append(f"The gateway goes on with it: {again}, {stop}.")
        return " ".join(lines)


_interrupts = _Interrupts()


async def _cancel(token, keys):
    fields = {"idempotency_keys": keys, "wait_ms": _CANCEL_WAIT_S * 1000}
    _child_token.set(token)
    for wait_s in _RETRY_WAITS_S:
        (done,) = [each async for each in _exchange("/groups/cancel", fields)]
        if done["groups"] > 0:
            break
        await asyncio.sleep(wait_s)  # The gateway may still read the request.
    return done


def _ended_line(replies):
    """Returns what the calls of cancelled requests have come to."""
    states = ("completed", "failed", "cancelled", "running", "queued", "skipped")
    counts = {each: sum(done["counts"][each] for done in replies) for each in states}
    calls = sum(counts.values())
    ids = [each for done in replies for each in done["ids"]]
    if not ids:
        return "No call was made."
    others = ("failed", "cancelled", "running")
    rest = "".join(f", {counts[each]} {each}" for each in others if counts[each])
    spent = sum(done["spent_usd"] for done in replies)
    line = (
        f"{counts['completed']} of {calls} calls answered{rest}, {_usd(spent)} spent."
    )
    if calls == counts["completed"]:
        return line
    if len(ids) == 1 and calls > 1:
        return line + f" llm_retry({ids[0]!r}) makes the rest and returns all answers."
    return line + " With an idempotency_key, answers are kept for the next time."


def _say_narrowed(group):
    """Says on standard error why few calls of a batch ran at once, and what helps.

    Where the budget did not last, the errors of the calls say what helps.
    """
    by = group.get("metrics", {}).get("narrowed_by")
    if by is not None and group.get("status") == "completed":
        calls = f"{by['width']} of {by['of']} calls run at once"
        line = f"fanout: the budget let {calls}. To run more, {by['remedy']}."
        print(line, file=sys.stderr, flush=True)


def _usd(usd):
    """Returns an amount of money for people: `$0.0040`, `$12.34`, `<$0.0001`."""
    if 0 < usd < 0.00005:
        return "<$0.0001"
    return f"${usd:,.2f}" if usd >= 1 else f"${usd:.4f}" if usd > 0 else "$0"


async def _repeated(path, fields, last, key):
    repeatable = re.fullmatch("/(query|batch|dag|runs|contexts)|.*/close", path)
    waits_s = (*_RETRY_WAITS_S, None) if repeatable else (None,)
    base, host, port, tls, request = _request(path, fields, last, key)
    timeout_s = _TIMEOUT_S + ((fields or {}).get("timeout_ms") or 0) / 1000
    timeout_s = float(os.environ.get("FANOUT_TIMEOUT_S") or timeout_s)
    seen = set()
    for wait_s in waits_s:
        try:
            async for status, text in _send(host, port, tls, request, last, timeout_s):
                answer = _parse(text, status)
                key = answer.get("index", answer.get("type"))
                failed = key == "error" or (answer.get("error") and key is None)
                if status >= 300 or failed:
                    raise _failure(answer, None if status == 200 else status)
                if key not in seen:  # A repeated request streams all slots once more.
                    seen.add(key)
                    yield answer
            if last is None or last in seen:
                return
            raise ConnectionError("the answer ended before its last line")
        except asyncio.TimeoutError as cause:
            message = f"no answer from the gateway at {base} within {timeout_s} s"
            raise FanoutError(message, "timeout", retryable=True) from cause
        except (OSError, EOFError, ValueError) as cause:
            if wait_s is None:
                message = f"no answer from the gateway at {base}: {cause!r}"
                raise FanoutError(message, "unreachable", retryable=True) from cause
        await asyncio.sleep(wait_s)


def _token():
    return _child_token.get() or _variable("TOKEN")


def _request(path, fields, last, key):
    """Returns the gateway's address, host, port, whether it has TLS, and the request."""
    # With the `/v1` that OpenAI's clients want, it is the same gateway.
    base = re.sub("/+(v1/*)?$", "", _variable("URL")) or "http://127.0.0.1:8787"
    url = re.fullmatch(
        r"(https?)://([\w.-]+|\[[\da-f:.]+\])(:\d+)?(/[!-~]*)?",
        base,
        re.IGNORECASE | re.ASCII,
    )
    token = _token()
    if not token:
        message = "FANOUT_TOKEN is not set: it is the token that POST /runs returns"
        raise FanoutError(message, "no_token")
    if not url:
        message = f"FANOUT_URL must be an http:// or https:// address, not {base!r}"
        raise FanoutError(message, "bad_url")
    scheme, host, port, prefix = url.groups(default="")
    data = ""
    if fields is not None:
        fields = dict(fields)
        fields.pop("idempotency_key", None)
        data = json.dumps(fields)
    lines = [
        f"{'GET' if fields is None else 'POST'} {prefix}{path} HTTP/1.1",
        f"host: {host}{port}",
        f"authorization: Bearer {token}",
        f"accept: application/{'x-ndjson' if last else 'json'}",
        "connection: close",
        "content-type: application/json",
        f"content-length: {len(data)}",
        f"idempotency-key: {key}",
        f"x-fanout-epoch: {_EPOCH}",
        "",
        data,
    ]
    # A line break in a token or a key would begin another header.
    if re.search(r"[^ -\x7f]", "".join(lines)):
        raise ValueError("a token and an idempotency key are visible ASCII characters")
    tls = scheme.lower() == "https"
    request = "\r\n".join(lines).encode("ascii")
    return base, host.strip("[]"), port[1:] or (443 if tls else 80), tls, request


async def _send(host, port, tls, request, by_line, timeout_s):
    """Sends a request. Yields the status with the body, or with each line of a stream."""
    connecting = asyncio.open_connection(host, port, ssl=tls or None)
    reader, writer = await _within(connecting, timeout_s)
    with contextlib.closing(writer):
        # Close by a reset: only that is noticed by a gateway that runs without Cloudflare.
        at_once = struct.pack("ii", 1, 0)
        connection = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
        writer.write(request)
        rest = b""
        async for status, piece in _pieces(reader, timeout_s):
            is_stream = by_line and status == 200
            *lines, rest = (rest + piece).split(b"\n") if is_stream else [rest + piece]
            for line in lines:
                if line.strip():  # White space keeps the connection alive.
                    yield status, line
        if rest.strip() or not is_stream:
            yield status, rest


async def _pieces(reader, timeout_s):
    """Yields the status with each piece of the body."""
    head = await _within(reader.readuntil(b"\r\n\r\n"), timeout_s)
    status = int(head[9:12])
    headers = dict(re.findall(rb"\n([a-z-]+): *([^\r]*)", head.lower()))
    if b"chunked" in headers.get(b"transfer-encoding", b""):
        while True:
            size_line = await _within(reader.readline(), timeout_s)
            size = int(size_line, 16)
            # A line break follows the chunk.
            chunk = await _within(reader.readexactly(size + 2), timeout_s)
            yield status, chunk[:size]
            if size == 0:
                return
    elif b"content-length" in headers:
        length = int(headers[b"content-length"])
        yield status, await _within(reader.readexactly(length), timeout_s)
    else:
        yield status, await _within(reader.read(), timeout_s)


async def _within(work, timeout_s):
    """Waits for `work`, at most so long. Raises TimeoutError if that is over.

    Before Python 3.12, asyncio.wait_for takes no notice of a cancellation that comes
    with the result: a program would go on after its Ctrl-C.
    """
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=timeout_s)
    finally:
        task.cancel()
    if not done:
        raise asyncio.TimeoutError
    return task.result()


def _variable(name):
    value = os.environ.get("FANOUT_" + name) or os.environ.get("GATEWAY_" + name)
    return (value or "").strip()


def _parse(text, status):
    try:
        answer = json.loads(text)
    except ValueError:
        answer = None
    if not isinstance(answer, dict) or 300 <= status < 400:
        message = f"not a JSON object: {text[:200]!r}"
        raise FanoutError(message, "bad_answer", status, status in (408, 503))
    return answer


def _failure(answer, status=None):
    """Returns the FanoutError for an answer with an error, or without what it should have."""
    error = answer.get("error")
    if not error:
        message = f"unexpected answer: {answer!r}"[:300]
        error = {"message": message, "code": "bad_answer"}
    elif isinstance(error, str):
        error = {"message": error, "code": "tool_error"}
    retryable = error.get("retryable", status in (408, 503))
    return FanoutError(
        error.get("message"),
        error.get("code"),
        status,
        retryable,
        error.get("attempts"),
        error.get("charged_usd"),
    )
