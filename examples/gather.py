"""Send many single calls at once with asyncio.gather.

    FANOUT_URL=… FANOUT_TOKEN=… python3 examples/gather.py

The program does not use a batch: the gateway groups calls that arrive together. One call fails on purpose; the others are
not affected. Then the program sends the same questions in one request with batch_llm_query.

FANOUT_MODEL selects the model. The default is the gateway's simulated model, which takes 300 ms and returns the question.
"""
import asyncio
import contextlib
import http.client
import json
import os
import sys
import time
from urllib.parse import urlsplit

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "stubs", "python-async"))
from fanout_async import FanoutError, batch_llm_query, llm_budget, llm_query  # noqa: E402

MODEL = os.environ.get("FANOUT_MODEL") or "sim/echo?ms=300"
FAILING_MODEL = "sim/fail?status=400"
METALS = ["iron", "copper", "tin", "lead", "zinc", "silver", "gold", "mercury", "nickel", "cobalt", "titanium", "tungsten"]
UNLUCKY = "lead"


def gateway(method, path):
    """Sends a request for which the stub has no function, with the run's token. Returns the body as text."""
    base = urlsplit(os.environ.get("FANOUT_URL") or "http://127.0.0.1:8787")
    connect = http.client.HTTPSConnection if base.scheme == "https" else http.client.HTTPConnection
    headers = {"authorization": "Bearer " + os.environ["FANOUT_TOKEN"]}
    with contextlib.closing(connect(base.netloc, timeout=60)) as connection:
        connection.request(method, base.path.rstrip("/") + path, headers=headers)
        reply = connection.getresponse()
        text = reply.read().decode("utf-8")
    if reply.status < 300:
        return text
    error = json.loads(text)["error"]
    raise FanoutError(error["message"], error["code"], reply.status, error["retryable"])


class GroupLog:
    """Shows the groups that the run's log has recorded since the last call."""

    def __init__(self):
        self.path, self.seen = "/runs/{}".format(json.loads(gateway("GET", "/run"))["id"]), 0

    def show(self):
        gateway("POST", self.path + "/flush")  # Calls can join the group until its window closes, so close it now.
        lines = gateway("GET", "{}/log?after={}".format(self.path, self.seen)).split("\n")
        events = [json.loads(line) for line in lines if line]
        self.seen = events[-1]["seq"] if events else self.seen
        for event in events:
            if event["event_type"] == "group_completed":
                print("  {}: {} calls in {:.2f}s instead of {:.2f}s ({:.1f}x, {} at once), {} failed, ${:.6f}".format(
                    event["parallel_group_id"], event["count"], event["execution_ms"] / 1000,
                    event["sequential_ms"] / 1000, event["speedup"] or 1, event["peak_parallel"], event["failed"],
                    event["cost"]))


def question(metal):
    """A call that starts when it is awaited."""
    model = FAILING_MODEL if metal == UNLUCKY else MODEL
    return llm_query("In one sentence: what is {} used for?".format(metal), model=model, max_tokens=80)


async def main():
    spent_before = (await llm_budget())["usd"]["spent"]
    log = GroupLog()
    print("asyncio.gather over {} single calls".format(len(METALS)))
    started = time.monotonic()
    answers = await asyncio.gather(*map(question, METALS), return_exceptions=True)
    for metal, answer in zip(METALS, answers):
        if isinstance(answer, FanoutError):
            answer = "! {}: {}".format(answer.code, answer)
        elif isinstance(answer, BaseException):
            raise answer  # Not the gateway's word, but a mistake in here.
        print("  {:<9} {}".format(metal, answer))
    print("  all there after {:.2f}s".format(time.monotonic() - started))
    log.show()

    print("batch_llm_query over the same calls: one request")
    answers = await batch_llm_query(*map(question, METALS))
    print("  {} of {} answered".format(sum(not str(answer).startswith("[error]") for answer in answers), len(answers)))
    log.show()

    print("Spent ${:.6f} in all".format((await llm_budget())["usd"]["spent"] - spent_before))


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except FanoutError as error:
        sys.exit("{} ({})".format(error, error.code))
