"""Ask one question at a time, as many at once as you like: asyncio.gather over single calls.

    FANOUT_URL=… FANOUT_TOKEN=… python3 examples/gather.py

Nothing here says "batch": the gateway sees that calls arrive together and treats them as one parallel group. One of them
is made to fail, and the others do not notice. Then the same questions go as one request, by batch_llm_query.

FANOUT_MODEL chooses the model; without it the gateway's simulated one answers, which takes 300 ms and repeats the
question.
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
    """A request that the stub has no function for, with the run's token. Returns the text of the answer."""
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
    """What the gateway recorded about the run's parallel groups since it was last asked."""

    def __init__(self):
        self.path, self.seen = "/runs/{}".format(json.loads(gateway("GET", "/run"))["id"]), 0

    def show(self):
        gateway("POST", self.path + "/flush")  # Calls may still join the group until its window closes: close it now.
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
    """A call that has not been made yet: it starts when it is awaited."""
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
