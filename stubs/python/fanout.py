"""Ask a fanout gateway from Python 3.8 or newer. One file, standard library only: copy it into the sandbox.

    from fanout import llm_query, llm_query_batch
    answer = llm_query("What is 2 + 2?")
    answers = llm_query_batch(["Summarise: " + page for page in pages], max_tokens=200)

FANOUT_URL names the gateway (default http://127.0.0.1:8787), FANOUT_TOKEN carries the run token; GATEWAY_URL and
GATEWAY_TOKEN stand in for them. A keyword argument is sent as the request field of that name, and the gateway refuses
one that it does not know. Nothing here retries: the gateway does.
"""
import asyncio
import concurrent.futures
import contextlib
import functools
import http.client
import json
import os
from urllib import error as urlerror, parse as urlparse, request as urlrequest

TIMEOUT_S = 660.0  # Longest silence borne: above the gateway's own limit (600 s), so that its error arrives.
# A redirect followed would carry the token to another host.
_NoRedirect = type("_NoRedirect", (urlrequest.HTTPRedirectHandler,), {"redirect_request": lambda *_: None})
ASYNC_WIDTH = 256  # Threads of the async twins: asyncio's own pool (CPU count + 4) would throttle a wide gather.


class FanoutError(Exception):
    """A failed call. `code`: one of the gateway's, or `no_token`, `bad_url`, `unreachable`, `timeout`, `bad_answer`;
    `status`: HTTP status or None; `retryable`: the same call may succeed later; `retry_after_s`: seconds or None."""
    def __init__(self, message, code="unknown", status=None, retryable=False, retry_after_s=None):
        super().__init__(message)
        self.code, self.status, self.retryable, self.retry_after_s = code, status, retryable, retry_after_s


def llm_query(prompt, model=None, **params):
    """The answer to one prompt (a string, or a list of chat messages). Raises FanoutError when the call fails."""
    return _ask("/query", _with(_item(prompt), model, params), "text")["text"]


def llm_query_batch(prompts, model=None, **options):
    """The answers to many prompts, asked at once, in the order of `prompts`. A failed one is the string
    "[error] message" in its place and touches no other. Raises FanoutError only when the whole request fails."""
    prompts = _listed(prompts)
    results = _ask("/batch", _batch(prompts, model, options), "results")["results"] if prompts else []
    if len(results) != len(prompts):
        raise FanoutError("asked {} prompts, got {} results".format(len(prompts), len(results)), "bad_answer")
    return results


def llm_stream(prompts, model=None, **options):
    """Like llm_query_batch, but yields events while they happen: a dict per slot as it ends (`"type": "slot"`, its
    `index`, its answer), and `"type": "group_completed"` last."""
    prompts, event = _listed(prompts), {"type": None}
    if not prompts:
        return
    with _reply("/batch", _batch(prompts, model, options), "application/x-ndjson") as reply:
        for line in filter(bytes.strip, reply):
            event = _parse(line)
            if event.get("type", "error") == "error":
                raise _refusal(event)
            yield event
    if event["type"] != "group_completed":
        raise FanoutError("the answer ended before its group_completed line", "bad_answer", retryable=True)


def llm_run():
    """The document of the run that the token belongs to: its budget, width and figures."""
    return _ask("/run", None, "budget")


def _twin(function):
    @functools.wraps(function)
    async def twin(*args, **options):
        call = functools.partial(function, *args, **options)
        return await asyncio.get_running_loop().run_in_executor(_pool(os.getpid()), call)
    return twin


@functools.lru_cache(maxsize=None)
def _pool(_process):  # One per process: threads do not survive a fork.
    return concurrent.futures.ThreadPoolExecutor(ASYNC_WIDTH, "fanout")


llm_query_batched = llm_batch = llm_query_batch
allm_query, allm_query_batch = _twin(llm_query), _twin(llm_query_batch)  # For asyncio: gather as many as you like.


def _listed(prompts):
    if isinstance(prompts, (str, bytes, dict)):  # A string is a sequence too: each letter would become a paid call.
        raise TypeError("prompts must be a list of prompts, not one " + type(prompts).__name__)
    return list(prompts)


def _item(prompt):
    return prompt if isinstance(prompt, dict) else {"messages" if isinstance(prompt, list) else "prompt": prompt}


def _batch(prompts, model, options):
    plain = all(isinstance(prompt, str) for prompt in prompts)
    return _with({"prompts": prompts} if plain else {"items": [_item(prompt) for prompt in prompts]}, model, options)


def _with(body, model, options):
    return dict(body, **options) if model is None else dict(body, **options, model=model)


def _ask(path, body, field):
    with _reply(path, body, "application/json") as reply:
        answer = _parse(reply.read())  # May begin with the white space that kept a long wait alive.
    if field not in answer:  # A failure after the headers were sent: status 200, the error inside.
        raise _refusal(answer)
    return answer


@contextlib.contextmanager
def _reply(path, body, accept):
    base = os.environ.get("FANOUT_URL") or os.environ.get("GATEWAY_URL") or "http://127.0.0.1:8787"
    token = (os.environ.get("FANOUT_TOKEN") or os.environ.get("GATEWAY_TOKEN") or "").strip()
    host = urlparse.urlsplit(base).hostname
    if not token:
        raise FanoutError("FANOUT_TOKEN is not set: it carries the token that POST /runs answers with", "no_token")
    if not host or not base.startswith(("http://", "https://")):
        raise FanoutError("FANOUT_URL must be an http:// or https:// address, not {!r}".format(base), "bad_url")
    headers = {"authorization": "Bearer " + token, "accept": accept, "content-type": "application/json"}
    request = urlrequest.Request(base.rstrip("/") + path, body and json.dumps(body).encode("ascii"), headers)
    silence_s = TIMEOUT_S + ((body or {}).get("timeout_ms") or 0) / 1000
    loopback = host in ("localhost", "::1") or host.startswith("127.")  # No egress proxy reaches the sandbox's own.
    opener = urlrequest.build_opener(_NoRedirect, *([urlrequest.ProxyHandler({})] if loopback else []))
    try:
        with opener.open(request, timeout=silence_s) as reply:
            yield reply
    except urlerror.HTTPError as refused:
        raise _refusal(_parse(refused.read()), refused.code, refused.headers.get("retry-after")) from None
    except (OSError, http.client.HTTPException) as cause:
        code = "timeout" if "timed out" in str(cause) else "unreachable"
        raise FanoutError("no answer from the gateway at {}: {}".format(base, cause), code, retryable=True) from cause


def _parse(data):
    try:
        answer = json.loads(data.decode("utf-8"))
    except ValueError:
        answer = None
    return answer if isinstance(answer, dict) else {"error": "not a JSON object: {!r}".format(data[:200])}


def _refusal(answer, status=None, retry_after=None):
    error = answer.get("error") or "unexpected answer {!r}".format(answer)[:300]
    error = error if isinstance(error, dict) else {"message": error}
    wait_s, code = float(retry_after) if str(retry_after).isdigit() else None, error.get("code", "bad_answer")
    return FanoutError(error.get("message"), code, status, error.get("retryable", False), wait_s)
