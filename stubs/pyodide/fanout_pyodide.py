"""Calls a fanout gateway from Python in WebAssembly: Pyodide in a page, a worker, Deno, Node.

One file, no packages: copy it into Pyodide's file system.

    from fanout_pyodide import configure, llm_query_batch, llm_query_sync, with_run

    configure("https://fanout.example.com", token)
    answers = await llm_query_batch(["Summarise: " + page for page in pages], max_tokens=200)
    async with with_run(usd=0.05):  # Calls in this block can spend 0.05 USD at most.
        answers = await llm_query_batch(["Translate: " + page for page in pages])
    answer = llm_query_sync("What is 2 + 2?")  # Blocks: only in a browser's worker.

Each function but llm_stream has a variant that blocks, with `_sync` after its name.

Environment variables, if configure() is not called:
    FANOUT_URL        the gateway's address (default http://127.0.0.1:8787); or GATEWAY_URL
    FANOUT_TOKEN      the run token, which POST /runs returned; or GATEWAY_TOKEN
    FANOUT_TIMEOUT_S  how long the gateway may be silent before a call fails (default 660);
                      how long the whole call may take, if it blocks

A keyword argument is sent as the request field of that name. `idempotency_key` is sent as
a header instead: a restarted program that repeats the call under the same key gets the
recorded answer at no cost. If the connection is lost, the request is repeated under the
same key and is paid once. All other retries happen in the gateway.
"""

import asyncio
import contextlib
import contextvars
import json
import os
import re
import secrets
import time

import js
from pyodide.ffi import JsException, to_js

__all__ = [
    "FanoutError",
    "configure",
    "llm_query",
    "llm_message",
    "llm_query_batch",
    "llm_stream",
    "llm_dag",
    "llm_vote",
    "with_run",
    "with_run_sync",
    "llm_budget",
    "llm_usage",
    "tool_call",
    "llm_log",
    "FINAL",
    "llm_query_sync",
    "llm_query_batch_sync",
    "llm_dag_sync",
    "llm_vote_sync",
    "llm_budget_sync",
    "llm_usage_sync",
    "tool_call_sync",
    "llm_log_sync",
    "FINAL_sync",
    "llm_query_batched",
    "llm_batch",
]

# The waits before a request whose connection was lost is repeated.
_RETRY_WAITS_S = (0.25, 0.5, 1, 2)

# The default is longer than the gateway's own limit, so that its error message arrives.
_TIMEOUT_S = 660

_BUDGET_FIELDS = ("usd", "calls", "prompt_tokens", "completion_tokens")

# Names this life of the program, so that a run that records can replay the one before.
_EPOCH = secrets.token_hex(16)

# The token of the child run in whose `with_run` block this task is.
_child_token = contextvars.ContextVar("fanout_child_token", default=None)

# Whether requests block.
_blocks = contextvars.ContextVar("fanout_blocks", default=False)


class FanoutError(Exception):
    """A failed call.

    code: the gateway's code, or `no_token`, `bad_url`, `unreachable`, `timeout`,
        `bad_answer`, `tool_error`, `no_worker` (a call that blocks where it cannot)
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


def configure(url, token):
    """Sets the gateway's address and the run token, for pages: they have no environment."""
    os.environ.update(FANOUT_URL=url, FANOUT_TOKEN=token)


async def llm_query(prompt, model=None, **params):
    """Returns the answer to one prompt: a string, or a list of chat messages.

    Raises FanoutError if the call fails.
    """
    fields = {**_item(prompt), **_optional(model=model), **params}
    answer = await _call("/query", fields, expects="text")
    return answer.get("json", answer["text"])


async def llm_message(messages_or_prompt, model=None, tools=None, **params):
    """Returns the whole message of an answer as a dict: `content`, `tool_calls`, …

    `tools` are those of a chat completion: sent back as one of `messages`, with the
    results of its tools, the message goes on. Or they are names of tools of the run, which
    the gateway calls itself: the message is the last of at most `max_turns` answers.
    """
    fields = {**_item(messages_or_prompt), **_optional(model=model)}
    answer = await _call(
        "/query", {**fields, **_asking(params, tools)}, expects="message"
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
    name = "message" if "message" in options.get("include", ()) else "json"
    slots = []
    async for event in llm_stream(prompts, model, **options):
        if event["type"] == "slot":
            slots.append(event)
    slots.sort(key=lambda slot: slot["index"])
    return [slot.get(name, slot["result"]) for slot in slots]


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
        yield event


async def llm_dag(tasks, **options):
    """Returns the answer of a graph: tasks (dicts) whose prompts refer to each other.

    graph = await llm_dag([{"id": "a", "prompt": "…"}, {"id": "b", "prompt": "{{a.output}}"}])
    graph["outputs"]["b"]
    """
    return await _call("/dag", {"tasks": list(tasks), **options}, expects="tasks")


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
    must be awaited there. `with with_run_sync(…)` is the same for calls that block.
    """
    run = await _open_run(settings)
    outer = _child_token.set(run["token"])
    try:
        yield run
    except BaseException:
        _child_token.reset(outer)
        with contextlib.suppress(
            FanoutError
        ):  # The block's own exception matters more.
            await _close_run(run)
        raise
    _child_token.reset(outer)
    await _close_run(run)


@contextlib.contextmanager
def with_run_sync(**settings):
    run = _open_run_sync(settings)
    outer = _child_token.set(run["token"])
    try:
        yield run
    except BaseException:
        _child_token.reset(outer)
        with contextlib.suppress(FanoutError):
            _close_run_sync(run)
        raise
    _child_token.reset(outer)
    _close_run_sync(run)


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


async def _open_run(settings):
    fields = {name: settings[name] for name in settings if name not in _BUDGET_FIELDS}
    limits = {name: settings[name] for name in settings if name in _BUDGET_FIELDS}
    if limits:
        fields["budget"] = {**fields.get("budget", {}), **limits}
    return await _call("/runs", fields, expects="token")


async def _close_run(run):
    await _call(f"/runs/{run['id']}/close", {}, expects="status")


def _blocking(function):
    """Returns the variant of a coroutine function that blocks."""

    def blocking(*args, **options):
        outer = _blocks.set(True)
        try:
            # Nothing in the coroutine awaits an event now: one step completes it.
            function(*args, **options).send(None)
        except StopIteration as end:
            return end.value
        finally:
            _blocks.reset(outer)

    return blocking


llm_query_sync = _blocking(llm_query)
llm_query_batch_sync = _blocking(llm_query_batch)
llm_dag_sync = _blocking(llm_dag)
llm_vote_sync = _blocking(llm_vote)
llm_budget_sync = _blocking(llm_budget)
llm_usage_sync = _blocking(llm_usage)
tool_call_sync = _blocking(tool_call)
llm_log_sync = _blocking(llm_log)
FINAL_sync = _blocking(FINAL)
_open_run_sync = _blocking(_open_run)
_close_run_sync = _blocking(_close_run)

# The names that other systems use.
llm_query_batched = llm_batch = llm_query_batch


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
    (answer,) = [answer async for answer in _exchange(path, fields)]
    if expects not in answer:
        raise _failure(answer)
    return answer


async def _exchange(path, fields=None, last=None):
    """Yields the gateway's answer, or the events of a stream up to the type `last`.

    If the connection is lost, the request is repeated under the same idempotency key,
    where the gateway knows one.
    """
    repeatable = re.fullmatch("/query|/batch|/dag|/runs|.*/close", path) is not None
    waits_s = (*_RETRY_WAITS_S, None) if repeatable else (None,)
    base, request = _request(fields, last)
    timeout_s = float(os.environ.get("FANOUT_TIMEOUT_S") or _TIMEOUT_S)
    send = _send_blocking if _blocks.get() else _send
    seen = set()
    for wait_s in waits_s:
        try:
            pieces = send(base + path, request, timeout_s)
            async for status, text in _texts(pieces, by_line=last is not None):
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
        except TimeoutError as cause:
            message = f"no answer from the gateway at {base} within {timeout_s} s"
            raise FanoutError(message, "timeout", retryable=True) from cause
        except OSError as cause:
            if wait_s is None:
                message = f"no answer from the gateway at {base}: {cause}"
                raise FanoutError(message, "unreachable", retryable=True) from cause
        if _blocks.get():
            time.sleep(wait_s)
        else:
            await asyncio.sleep(wait_s)


def _request(fields, last):
    """Returns the gateway's address, and the request for `fetch`. GET without fields."""
    # With the `/v1` that OpenAI's clients want, it is the same gateway.
    base = re.sub("/+(v1/*)?$", "", _variable("URL")) or "http://127.0.0.1:8787"
    token = _child_token.get() or _variable("TOKEN")
    if not token:
        message = "no run token: configure() takes the token that POST /runs returns"
        raise FanoutError(message, "no_token")
    if not re.fullmatch(r"https?://[^\s/@]+(/\S*)?", base, re.IGNORECASE):
        message = f"the gateway's address must be http:// or https://, not {base!r}"
        raise FanoutError(message, "bad_url")
    headers = {
        "authorization": "Bearer " + token,
        "accept": "application/x-ndjson" if last else "application/json",
        "content-type": "application/json",
        "x-fanout-epoch": _EPOCH,
    }
    if fields is None:
        return base, {"method": "GET", "headers": headers}
    fields = dict(fields)
    headers["idempotency-key"] = fields.pop("idempotency_key", secrets.token_hex(16))
    return base, {"method": "POST", "headers": headers, "body": json.dumps(fields)}


async def _send(url, request, timeout_s):
    """Yields the status with each piece of the body, by `fetch`."""
    controller = js.AbortController.new()
    # To follow a redirect would carry the token to another host.
    options = {**request, "redirect": "manual", "signal": controller.signal}

    async def within_timeout(promise):
        timer = js.setTimeout(controller.abort.bind(controller), timeout_s * 1000)
        try:
            return await promise
        except JsException as cause:
            kind = TimeoutError if controller.signal.aborted else ConnectionError
            raise kind(str(cause)) from cause
        finally:
            js.clearTimeout(timer)

    try:
        options = to_js(options, dict_converter=js.Object.fromEntries)
        reply = await within_timeout(js.fetch(url, options))
        # A browser does not show the status of a redirect.
        status = 302 if reply.type == "opaqueredirect" else reply.status
        yield status, b""
        if reply.body:
            reader = reply.body.getReader()
            while not (part := await within_timeout(reader.read())).done:
                yield status, part.value.to_bytes()
    finally:
        controller.abort()


async def _send_blocking(url, request, timeout_s):
    """Yields the status with the body, by an XMLHttpRequest that blocks."""
    if hasattr(js, "document") or not hasattr(js, "XMLHttpRequest"):
        message = "only a browser's worker can block: await the function without _sync"
        raise FanoutError(message, "no_worker")
    xhr = js.XMLHttpRequest.new()
    xhr.open(request["method"], url, False)
    xhr.timeout = timeout_s * 1000
    for name, value in request["headers"].items():
        xhr.setRequestHeader(name, value)
    try:
        xhr.send(request.get("body"))
    except JsException as cause:
        kind = TimeoutError if cause.name == "TimeoutError" else ConnectionError
        raise kind(str(cause)) from cause
    # It follows redirects: the answer of another address is not the gateway's.
    is_redirected = xhr.responseURL != js.URL.new(url).href
    yield 302 if is_redirected else xhr.status, xhr.responseText.encode("utf-8")


async def _texts(pieces, by_line):
    """Yields the status with the whole body, or with each line of a stream."""
    rest = b""
    is_stream = False
    async for status, piece in pieces:
        is_stream = by_line and status == 200
        *lines, rest = (rest + piece).split(b"\n") if is_stream else [rest + piece]
        for line in lines:
            if line.strip():  # White space keeps the connection alive.
                yield status, line
    if rest.strip() or not is_stream:
        yield status, rest


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
