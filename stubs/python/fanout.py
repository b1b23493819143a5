"""Calls a fanout gateway from Python 3.8 or newer.

One file, standard library only: copy it into the sandbox.

    from fanout import llm_query, llm_query_batch, with_run

    answer = llm_query("What is 2 + 2?")
    answers = llm_query_batch(["Summarise: " + page for page in pages], max_tokens=200)
    with with_run(usd=0.05):  # Calls in this block can spend 0.05 USD at most.
        answers = llm_query_batch(["Translate: " + page for page in pages])

Environment variables:
    FANOUT_URL        the gateway's address (default http://127.0.0.1:8787); or GATEWAY_URL
    FANOUT_TOKEN      the run token, which POST /runs returned; or GATEWAY_TOKEN
    FANOUT_TIMEOUT_S  how long the gateway may be silent before a call fails (default 660)

A keyword argument is sent as the request field of that name; with `schema` an answer is
the JSON value that fits it, not its text. `idempotency_key` is sent as
a header instead: a restarted program that repeats the call under the same key gets the
recorded answer at no cost. If the connection is lost, the request is repeated under the
same key and is paid once. All other retries happen in the gateway.

Ctrl-C in the main thread cancels the queued calls of a request; those in flight end, and
a line on standard error says what was answered and spent, and how to continue. A request
with a key of its own goes on. A second Ctrl-C waits for nothing.

For asyncio use /stubs/python-async.
"""

import contextlib
import contextvars
import http.client
import json
import os
import re
import secrets
import sys
import threading
import time
from urllib import request as urlrequest

__all__ = [
    "FanoutError",
    "llm_query",
    "llm_message",
    "llm_query_batch",
    "rlm_query",
    "llm_query_batched",
    "llm_batch",
    "rlm_query_batched",
    "llm_stream",
    "llm_context",
    "llm_map",
    "llm_dag",
    "llm_plan",
    "llm_group",
    "llm_report",
    "llm_retry",
    "llm_cancel",
    "llm_vote",
    "with_run",
    "llm_budget",
    "llm_usage",
    "llm_run",
    "llm_events",
    "llm_worker_token",
    "tool_call",
    "llm_work",
    "llm_log",
    "FINAL",
    "FINAL_VAR",
    "SUBMIT",
]

# The waits before a request whose connection was lost is repeated.
_RETRY_WAITS_S = (0.25, 0.5, 1, 2)

# The default is longer than the gateway's own limit, so that its error message arrives.
_TIMEOUT_S = 660

_BUDGET_FIELDS = ("usd", "calls", "prompt_tokens", "completion_tokens")

# How long Ctrl-C waits for the end of calls in flight, at most.
_CANCEL_WAIT_S = 60

# Names this life of the program, so that a run that records can replay the one before.
_EPOCH = secrets.token_hex(16)

# The token of the child run in whose `with_run` block this thread or task is.
_child_token = contextvars.ContextVar("fanout_child_token", default=None)


class FanoutError(Exception):
    """A failed call.

    code: the gateway's code, or `no_token`, `bad_url`, `unreachable`, `timeout`,
        `bad_answer`, `tool_error`
    status: the HTTP status, or None if there was no answer
    retryable: whether the same call may succeed later
    retry_after_s: the wait that the gateway suggests, or None
    attempts, charged_usd: what a call has used up that was made; else None
    """

    def __init__(
        self,
        message,
        code="unknown",
        status=None,
        retryable=False,
        retry_after_s=None,
        attempts=None,
        charged_usd=None,
    ):
        super().__init__(message)
        self.code = code
        self.status = status
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.attempts = attempts
        self.charged_usd = charged_usd


def llm_query(prompt, model=None, **params):
    """Returns the answer to one prompt: a string, or a list of chat messages.

    Raises FanoutError if the call fails.
    """
    fields = {"model": model, **_item(prompt), **params}
    answer = _call("/query", fields, expects="text")
    return answer.get("json", answer["text"])


def llm_message(messages_or_prompt, model=None, tools=None, **params):
    """Returns the whole message of an answer as a dict: `content`, `tool_calls`, …

    `tools` are those of a chat completion: sent back as one of `messages`, with the
    results of its tools, the message goes on. Or they are names of tools of the run, which
    the gateway calls itself. Raises FanoutError if the call fails.
    """
    fields = {"model": model, **_item(messages_or_prompt), **_asking(params, tools)}
    return _call("/query", fields, expects="message")["message"]


def llm_query_batch(prompts, model=None, tools=None, **options):
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
    prompts, fields = _batch_request(prompts, model, options)
    if not prompts:
        return []
    answer = _call("/batch", fields, expects="results")
    _say_narrowed(answer)
    results = answer["results"]
    if len(results) != len(prompts):
        message = f"sent {len(prompts)} prompts, got {len(results)} results"
        raise FanoutError(message, "bad_answer")
    slots = answer.get("items") or [{}] * len(results)
    name = "message" if "message" in options.get("include", ()) else "json"
    return [slot.get(name, result) for slot, result in zip(slots, results)]


# The names that other systems use.
rlm_query = llm_query
llm_query_batched = llm_batch = rlm_query_batched = llm_query_batch


def llm_stream(prompts, model=None, **options):
    """Yields the results of a batch as its slots end, each slot once.

    An event is a dict: `"type": "slot"` with `index`, `result` and `error` (None if the
    slot succeeded). The last event has `"type": "group_completed"`.
    """
    prompts, fields = _batch_request(prompts, model, options)
    seen = set()

    def events(reply):
        for line in reply:
            if not line.strip():  # White space keeps the connection alive.
                continue
            if not line.endswith(b"\n"):  # The connection was lost within a line.
                break
            event = _parse(line)
            if event.get("type", "error") == "error":
                raise _failure(event)
            key = event.get("index", event["type"])
            if key not in seen:  # A repeated request streams all slots once more.
                seen.add(key)
                yield event
            if key == "group_completed":
                _say_narrowed(event)
                return
        raise ConnectionError("the answer ended before its group_completed line")

    if prompts:
        yield from _exchange("/batch", fields, events, "application/x-ndjson")


def llm_context(text, name=None):
    """Stores a text in the run and returns its id, which calls name as `context`.

        book = llm_context(open("book.txt").read())
        answers = llm_query_batch(questions, context=book)

    The same text has the same id. The gateway puts it before each prompt; the requests of
    this program stay short.
    """
    fields = {"text": text} if name is None else {"text": text, "name": name}
    return _call("/contexts", fields, expects="id")["id"]


def llm_map(context, prompt, size=8000, by="chars", overlap=0, model=None, **options):
    """Returns the answers to a prompt about each chunk of a text, in the text's order.

        notes = llm_map(book, "List the names in this part: {{chunk}}", size=20000)

    context: a text, or the id of one. prompt: has `{{chunk}}` where a chunk goes. size: the
    most characters of a chunk. by: `chars`, `lines`, `paragraphs` or `markdown`.
    overlap: the most characters that a chunk repeats of the one before.
    """
    if not re.fullmatch("ctx_[0-9a-f]{32}", context):
        context = llm_context(context)
    over = {"context": context, "split": {"by": by, "size": size, "overlap": overlap}}
    fields = {"over": over, "prompt": prompt, "model": model, **options}
    answer = _call("/batch", fields, expects="results")
    _say_narrowed(answer)
    return answer["results"]


def llm_dag(tasks, **options):
    """Returns the answer of a graph: tasks (dicts) whose prompts refer to each other.

    graph = llm_dag([{"id": "a", "prompt": "…"}, {"id": "b", "prompt": "{{a.output}}"}])
    graph["outputs"]["b"]

    tasks may also be a plan in LLMCompiler's notation, a string: `1. search("…")`.
    """
    fields = tasks if isinstance(tasks, str) else {"tasks": list(tasks), **options}
    return _call("/dag", fields, expects="tasks")


def llm_plan(goal, **options):
    """Has a model write a graph for a goal, and runs it: `rounds`, `outputs`, `answer`.

    With `run=False` the plan is returned and not run: `rounds[0]["tasks"]`. With
    `stream=True` it runs while it is written, and its graph is returned, as by
    `llm_dag`. A plan has no key, so its request is never repeated.
    """
    return _call("/plan", {"goal": goal, **options}, expects="outputs")


def llm_group(group, wait_s=0):
    """Returns a group by its id: `status`, `counts`, and its results once it has ended.

    wait_s: how long to wait for its end; after that it is returned as it is.
    """
    wait = f"?wait_ms={round(wait_s * 1000)}" if wait_s else ""
    return _call(f"/groups/{group}{wait}", expects="status")


def llm_report(group, format="json"):
    """Returns the report of a group, by its id: what each agent did and what failed.

    format: `json`, `coordinator` or `swarm`.
    """
    return _call(f"/groups/{group}/report?format={format}", expects=None)


def llm_retry(group):
    """Makes the calls of a group again that did not complete; the others keep their answers.

    Returns the answer of the new group, with all results.
    """
    return _call(f"/groups/{group}/retry", {}, expects="results")


def llm_cancel(group, in_flight="end", wait_s=0):
    """Cancels the queued calls of a group, by its id or by the key of its request.

    Calls in flight end and cost what they cost; with `in_flight="abort"` they are aborted
    and stay charged at their reservation. `wait_s`: how long to wait for their end, up to
    60. Returns `groups` (0 = there is none), `counts` and `spent_usd`.
    """
    names = "ids" if re.fullmatch(r"pg-\d+-\w+", group) else "idempotency_keys"
    fields = {names: [group], "in_flight": in_flight, "wait_ms": int(wait_s * 1000)}
    return _call("/groups/cancel", fields, expects="counts")


def llm_vote(prompt, n=3, model=None, **options):
    """Asks a prompt `n` times. Returns the vote: `decided`, `winner`, `agreement`, …

    `aggregate` changes the rule, such as `{"strategy": "vote", "rule": "unanimous"}`.
    """
    _, fields = _batch_request([prompt] * n, model, options)
    fields = {"aggregate": {"strategy": "vote"}, **fields}
    return _call("/batch", fields, expects="aggregation")["aggregation"]


@contextlib.contextmanager
def with_run(**settings):
    """Opens a child run for a `with` block: calls in the block spend the child's budget.

        with with_run(usd=0.05, calls=20, name="translate") as run:
            answers = llm_query_batch(prompts)

    `usd`, `calls`, `prompt_tokens` and `completion_tokens` are limits. They are reserved
    in the budget of the run around the block; a limit that is left out becomes an equal
    split of what remains there. Other arguments are the fields of POST /runs: `name`,
    `max_parallel`, `models`, `default_model`, …

    The value is the child run's document with its `id` and its `token`. When the block
    ends, also by an exception, the child run is closed and what it has not spent returns.

    Blocks nest. Each thread and each task has its own: a new thread starts outside of
    all blocks, `contextvars.copy_context().run(function)` keeps it inside.
    """
    fields = {name: settings[name] for name in settings if name not in _BUDGET_FIELDS}
    limits = {name: settings[name] for name in settings if name in _BUDGET_FIELDS}
    if limits:
        fields["budget"] = {**fields.get("budget", {}), **limits}
    run = _call("/runs", fields, expects="token")
    close_path = f"/runs/{run['id']}/close"
    outer = _child_token.set(run["token"])
    try:
        yield run
    except BaseException:
        _child_token.reset(outer)
        with contextlib.suppress(
            FanoutError
        ):  # The block's own exception matters more.
            _call(close_path, {}, expects="status")
        raise
    _child_token.reset(outer)
    _call(close_path, {}, expects="status")


def llm_budget():
    """Returns what is left of the run's budget, child runs included.

    `usd`, `calls`, `prompt_tokens` and `completion_tokens`, each with `limit`, `spent`,
    `reserved` and `remaining`. The limit of an open child run is `reserved`; what a
    closed one has spent is `spent`.
    """
    return _call("/budget", expects="usd")


def llm_usage(reset=False):
    """Returns what the run itself has used since the last reset: child runs not included.

    `llm_calls`, `input_tokens`, `output_tokens`, `cost` in USD, `calls_by_model`. What
    child runs spent is in `llm_budget()`.
    """
    return _call("/usage?reset=1" if reset else "/usage", expects="llm_calls")


def llm_run():
    """Returns the document of the run: its budget, its width and its figures."""
    return _call("/run", expects="budget")


def llm_events():
    """Yields the events of the run's log so far, oldest first: a dict per line."""
    path = f"/runs/{llm_run()['id']}/log"
    yield from _exchange(path, None, lambda reply: map(_parse, reply))


def llm_worker_token():
    """Returns a token for a worker of this run, which can do nothing else: `token`, `run_id`."""
    path = f"/runs/{llm_run()['id']}/worker-token"
    return _call(path, {}, expects="token")


def tool_call(tool_name, **input):
    """Returns the result of a tool of the run.

    Sent once, also if the connection is lost: a tool may have effects.
    """
    fields = {"tool_name": tool_name, "input": input}
    return _call("/tool_call", fields, expects="result")["result"]


def llm_work(work, run=None, width=1, lease_s=60, models=None, until=None):
    """Serves the items of pull workers, up to `width` at once, until `until()` is true.

        llm_work(lambda item: {"text": agent(item["prompt"])})

    work: called in a thread of its own with an item, a dict that also has `stop`, a
        threading.Event that is set when the item is no longer this worker's. Returns the
        fields of POST /runs/:id/complete, such as `text` and `usage`. An exception is a
        failure that is not retried.
    run: the run's id; needed with a worker token, which cannot read it.
    lease_s: how long an item stays this worker's if it is not heard of.
    """
    path = f"/runs/{run or llm_run()['id']}"
    lease_ms = round(lease_s * 1000)
    inside = contextvars.copy_context  # The threads spend no other run's budget.
    open_leases = {}

    def serve(item):
        try:
            answer = work(item)
        except Exception as cause:
            message = f"{type(cause).__name__}: {cause}"[:500]
            answer = {"error": {"message": message, "retryable": False}}
        lease_id = item["lease_id"]
        with contextlib.suppress(FanoutError):  # The item may be another worker's.
            if not item["stop"].is_set():
                _call(
                    f"{path}/complete", {"lease_id": lease_id, **answer}, expects=None
                )
        open_leases.pop(lease_id, None)

    def renew():
        while True:
            time.sleep(lease_s / 3)
            leases = list(open_leases)
            with contextlib.suppress(FanoutError):
                fields = {"lease_ids": leases, "lease_ms": lease_ms}
                kept = leases and _call(f"{path}/heartbeat", fields, expects="leases")
                for lease in kept["leases"] if kept else []:
                    item = open_leases.get(lease["lease_id"])
                    if item and lease["state"] != "active":
                        item["stop"].set()

    threading.Thread(target=inside().run, args=(renew,), daemon=True).start()
    while not (until and until()):
        free = width - len(open_leases)
        if free < 1:
            time.sleep(0.02)
            continue
        wait_ms = 500 if open_leases or until else 20_000
        fields = {"max": free, "wait_ms": wait_ms, "lease_ms": lease_ms}
        claimed = _call(
            f"{path}/claim",
            {**fields, **({"models": models} if models else {})},
            expects="items",
        )
        for item in claimed["items"]:
            item["stop"] = threading.Event()
            open_leases[item["lease_id"]] = item
            threading.Thread(
                target=inside().run, args=(serve, item), daemon=True
            ).start()


def llm_log(event_type, **fields):
    """Appends an event to the run's log.

    Fields: `code`, `output`, `hasError`, `reasoning`, `usage`, `timestamps`, `step`,
    `data`.
    """
    _call("/log", {**fields, "event_type": event_type}, expects="appended")


def FINAL(x):
    """Records the program's result, any JSON value, as `final_result` in the run's log."""
    llm_log("final_result", output=x if isinstance(x, str) else json.dumps(x), data=x)


def FINAL_VAR(name):
    """Records the value of the caller's variable of that name as the result."""
    caller = sys._getframe(1)
    variables = {**caller.f_globals, **caller.f_locals}
    FINAL(variables[name.strip("'\" ")])


def SUBMIT(**fields):
    """Records a dict of the arguments as the result."""
    FINAL(fields)


def _item(prompt, name="prompt"):
    if isinstance(prompt, dict):
        return prompt
    if isinstance(prompt, (str, list)):
        return {"prompt" if isinstance(prompt, str) else "messages": prompt}
    # A table's empty cell is NaN, which JSON does not have.
    message = f"{name} is {prompt!r:.40}, not a string, a list of messages or a dict"
    raise TypeError(message)


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


def _batch_request(prompts, model, options):
    """Returns the prompts as a list, and the fields of the request."""
    # A string is a sequence too: each letter would become a paid call.
    if isinstance(prompts, (str, bytes, dict)):
        kind = type(prompts).__name__
        raise TypeError("prompts must be a list of prompts, not one " + kind)
    prompts = list(prompts)
    if all(isinstance(prompt, str) for prompt in prompts):
        fields = {"prompts": prompts}
    else:
        items = [_item(each, f"prompts[{i}]") for i, each in enumerate(prompts)]
        fields = {"items": items}
    return prompts, {**fields, "model": model, **options}


def _call(path, fields=None, *, expects, method=None):
    """Returns the answer, an object with the field `expects`; None = any object."""
    (data,) = _exchange(path, fields, lambda reply: [reply.read()], method=method)
    answer = _parse(data)
    # If a call fails after the headers were sent, the error follows a status of 200.
    if expects is not None and expects not in answer:
        raise _failure(answer)
    return answer


class _NoRedirect(urlrequest.HTTPErrorProcessor):
    """Returns a redirect as it is: to follow it would carry the token to another host."""

    def http_response(self, request, response):
        return response

    https_response = http_response


def _exchange(path, fields, read, accept="application/json", method=None):
    """Yields what `read` finds in the gateway's answer. GET if `fields` is None.

    If the connection is lost, the request is repeated under the same idempotency key,
    where the gateway knows one.
    """
    own_key = fields.get("idempotency_key") if isinstance(fields, dict) else None
    key = own_key or secrets.token_hex(16)
    told = []  # Whether a line about an interruption was written.

    @contextlib.contextmanager
    def interruptible():
        try:
            yield
        except KeyboardInterrupt:
            if not told and re.fullmatch("/(query|batch|dag)", path):
                told.append(True)
                line = "fanout: interrupted. " + _interrupted(key, bool(own_key))
                print(line, file=sys.stderr, flush=True)
            raise

    def read_on(reply):
        # Within the connection: once it is closed, calls in flight have 25 s.
        with interruptible():
            yield from read(reply)

    with interruptible():
        yield from _repeated(path, fields, key, read_on, accept, method)


def _interrupted(key, is_own):
    """Cancels a request that Ctrl-C has interrupted; returns what became of it."""
    if is_own:
        again = f"the same call with idempotency_key={key!r} returns its answers"
        return f"The gateway goes on: {again}, llm_cancel({key!r}) stops it."
    try:
        for wait_s in _RETRY_WAITS_S:
            done = llm_cancel(key, wait_s=_CANCEL_WAIT_S)
            if done["groups"] > 0:
                return _ended(done)
            time.sleep(wait_s)  # The gateway may still read the request.
    except KeyboardInterrupt:
        return "The calls in flight end in the gateway; nothing else starts."
    except FanoutError as cause:
        return f"Its calls go on ({cause}). llm_cancel({key!r}) stops them."
    return "No call was made."


def _ended(done):
    """Returns what the calls of a cancelled request have come to."""
    counts = done["counts"]
    calls = sum(counts.values())
    others = ("failed", "cancelled", "running")
    rest = "".join(f", {counts[each]} {each}" for each in others if counts[each])
    cost = f"{_usd(done['spent_usd'])} spent"
    line = f"{counts['completed']} of {calls} calls answered{rest}, {cost}."
    if calls == counts["completed"]:
        return line
    if calls == 1:
        return line + " With an idempotency_key, its answer is kept for the next time."
    return (
        f"{line} llm_retry({done['ids'][0]!r}) makes the rest and returns all answers."
    )


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


def _repeated(path, fields, key, read, accept, method):
    base, host = _gateway()
    repeatable = re.fullmatch("/(query|batch|dag|runs|contexts)|.*/close", path)
    waits_s = (*_RETRY_WAITS_S, None) if repeatable else (None,)
    request, timeout_s = _request(base + path, fields, accept, repeatable and key)
    request.method = method or request.get_method()
    handlers = [_NoRedirect]
    # An egress proxy does not reach this machine's own addresses.
    if re.fullmatch(r"localhost|127\..*|\[::1\]", host):
        handlers.append(urlrequest.ProxyHandler({}))
    opener = urlrequest.build_opener(*handlers)
    for wait_s in waits_s:
        try:
            with opener.open(request, timeout=timeout_s) as reply:
                if reply.status >= 300:
                    answer = _parse(reply.read(), reply.status)
                    retry_after = reply.headers.get("retry-after")
                    raise _failure(answer, reply.status, retry_after)
                yield from read(reply)
                return
        except (OSError, http.client.HTTPException) as cause:
            late = "timed out" in str(cause)
            if late or wait_s is None:
                code = "timeout" if late else "unreachable"
                message = f"no answer from the gateway at {base}: {cause}"
                raise FanoutError(message, code, retryable=True) from cause
        time.sleep(wait_s)


def _gateway():
    """Returns the gateway's address and the host in it."""
    # With the `/v1` that OpenAI's clients want, it is the same gateway.
    base = re.sub("/+(v1/*)?$", "", _variable("URL")) or "http://127.0.0.1:8787"
    address = re.fullmatch(
        r"https?://([\w.-]+|\[[\da-f:.]+\])(:\d+)?(/\S*)?", base, re.IGNORECASE
    )
    if not address:
        message = f"FANOUT_URL must be an http:// or https:// address, not {base!r}"
        raise FanoutError(message, "bad_url")
    return base, address[1]


def _request(url, fields, accept, key):
    """Returns the request, and how long the gateway may be silent, in seconds."""
    token = _child_token.get() or _variable("TOKEN")
    if not re.fullmatch("[!-~]+", token):
        message = "FANOUT_TOKEN is not set: it is the token that POST /runs returns"
        raise FanoutError(message, "no_token")
    headers = {
        "authorization": "Bearer " + token,
        "accept": accept,
        "content-type": "application/json",
        # Some proxies, Cloudflare's among them, refuse urllib's own name.
        "user-agent": "fanout-stub",
        "x-fanout-epoch": _EPOCH,
    }
    data = None
    timeout_s = _TIMEOUT_S
    if isinstance(fields, str):  # A plan, which is refused as a whole under a key.
        headers["content-type"] = "text/x-llmcompiler"
        headers["idempotency-key"] = key
        data = fields.encode()
    elif fields is not None:
        fields = dict(fields)
        if fields.get("model", "") is None:
            del fields["model"]
        if key:
            fields.pop("idempotency_key", None)
            headers["idempotency-key"] = key
        data = json.dumps(fields).encode("ascii")
        timeout_s += (fields.get("timeout_ms") or 0) / 1000
    timeout_s = float(os.environ.get("FANOUT_TIMEOUT_S") or timeout_s)
    return urlrequest.Request(url, data, headers), timeout_s


def _variable(name):
    value = os.environ.get("FANOUT_" + name) or os.environ.get("GATEWAY_" + name)
    return (value or "").strip()


def _parse(data, status=None):
    try:
        answer = json.loads(data.decode("utf-8"))
    except ValueError:
        answer = None
    if not isinstance(answer, dict) or 300 <= (status or 0) < 400:
        message = f"not a JSON object: {data[:200]!r}"
        raise FanoutError(message, "bad_answer", status, status in (408, 503))
    return answer


def _failure(answer, status=None, retry_after=None):
    """Returns the FanoutError for an answer with an error, or without what it should have."""
    error = answer.get("error")
    if not error:
        message = f"unexpected answer: {answer!r}"[:300]
        error = {"message": message, "code": "bad_answer"}
    elif isinstance(error, str):
        error = {"message": error, "code": "tool_error"}
    return FanoutError(
        error.get("message"),
        error.get("code"),
        status,
        error.get("retryable", status in (408, 503)),
        float(retry_after) if str(retry_after).isdigit() else None,
        error.get("attempts"),
        error.get("charged_usd"),
    )
