"""Several agents examine a change at once: those that must not fail first, then the others; their verdicts are put to a vote.

    FANOUT_URL=… FANOUT_TOKEN=… python3 examples/orchestrator.py

The gateway checks that the agents are independent before it asks any of them. Agents of tier P0 end before those of P1 begin,
and those before P2. A failed P0 agent escalates, a failed P1 agent warns, a failed P2 agent is noted. Every answer is kept; the
vote counts only answers, never errors. A vote without a winner, or an escalation, goes to a person: the program ends with 2.

FANOUT_MODEL selects the model. The default is the gateway's simulated model, which repeats what it is sent, with agents whose
prompts end in what they would answer.
"""
import contextlib
import http.client
import json
import os
import sys
from urllib.parse import urlsplit

MODEL = os.environ.get("FANOUT_MODEL")
CHANGE = "Retry a request after a timeout, at most three times, with a growing wait."

# Agents and what they are for. `weight`: how much a vote counts. `recorded`: an answer for the simulated model.
AGENTS = [
    {"id": "security", "tier": "P0", "weight": 3, "task": "Look for what an attacker could do with it.",
     "recorded": '{"verdict": "accept", "findings": ["waits are bounded"]}'},
    {"id": "correctness", "tier": "P0", "weight": 3, "task": "Look for calls that must not be made twice.",
     "recorded": '{"verdict": "accept", "findings": ["calls carry a key"]}'},
    {"id": "tests", "tier": "P1", "weight": 2, "task": "Say what no test covers.",
     "recorded": '{"verdict": "reject", "findings": ["no test of the third attempt"]}'},
    {"id": "cost", "tier": "P1", "weight": 1, "task": "Say what it costs under load.",
     "recorded": '{"verdict": "accept", "findings": ["three times the calls in an outage"]}'},
    {"id": "style", "tier": "P2", "weight": 1, "task": "Read names and comments.", "recorded": None},
]
ANSWER_FORM = 'Answer with JSON: {"verdict": "accept" or "reject", "findings": ["…"]}'


class GatewayError(Exception):
    """A request that the gateway refused, in its words."""


def gateway(method, path, body=None):
    """Sends a request with the run's token. Returns the reply's JSON, or its text if it is another type."""
    if not os.environ.get("FANOUT_TOKEN"):
        raise GatewayError("FANOUT_TOKEN is not set: open a run, for example with npm run token")
    base = urlsplit(os.environ.get("FANOUT_URL") or "http://127.0.0.1:8787")
    connect = http.client.HTTPSConnection if base.scheme == "https" else http.client.HTTPConnection
    headers = {"authorization": "Bearer " + os.environ["FANOUT_TOKEN"], "content-type": "application/json"}
    with contextlib.closing(connect(base.netloc, timeout=660)) as connection:
        connection.request(method, base.path.rstrip("/") + path, body=json.dumps(body) if body else None, headers=headers)
        reply = connection.getresponse()
        text = reply.read().decode()
    if reply.status >= 300:
        raise GatewayError("{code}: {message}".format(**json.loads(text)["error"]))
    return json.loads(text) if reply.headers["content-type"].startswith("application/json") else text


def item(agent):
    """An agent's call. It writes to a place of its own, which the gateway checks."""
    call = {"id": agent["id"], "tier": agent["tier"], "output_location": "reviews/{}.json".format(agent["id"])}
    if MODEL is None:
        if agent["recorded"] is None:
            return {**call, "model": "sim/fail?status=400", "prompt": agent["task"]}
        return {**call, "model": "sim/echo?ms=200", "prompt": agent["recorded"]}
    return {**call, "model": MODEL, "prompt": "{}\n\nThe change: {}\n\n{}".format(agent["task"], CHANGE, ANSWER_FORM)}


def examine():
    """One batch: tiers, independence, a weighted vote."""
    vote = {"strategy": "vote", "rule": "weighted", "by": "json_key", "key": "verdict",
            "weights": {agent["id"]: agent["weight"] for agent in AGENTS}}
    return gateway("POST", "/batch", {"items": [item(agent) for agent in AGENTS], "tiers": "strict",
                                      "validate_independence": "reject", "aggregate": vote, "max_tokens": 400})


def findings_of(reply):
    """Every agent's findings, or the code of its error. An answer that is no JSON has none."""
    found = {}
    for agent, result, error in zip(AGENTS, reply["results"], reply["errors"]):
        if error is not None:
            found[agent["id"]] = "! " + error["code"]
            continue
        with contextlib.suppress(ValueError, AttributeError):
            answer = json.loads(result)
            found[agent["id"]] = "{}: {}".format(answer.get("verdict"), "; ".join(map(str, answer.get("findings", []))))
        found.setdefault(agent["id"], "no JSON: " + result[:60])
    return found


def show(reply):
    tiers = {agent["id"]: agent["tier"] for agent in AGENTS}
    for name, text in findings_of(reply).items():
        print("  {} {:<13}{}".format(tiers[name], name, text))
    for kind in ("escalations", "warnings", "notes"):
        for failed in reply[kind]:
            print("  {}: {id} failed with {code}".format(kind, **failed))
    vote, metrics = reply["aggregation"], reply["metrics"]
    print("\nVote: {}, agreement {}, {} votes, {} failed".format(
        vote["winner"] if vote["decided"] else "undecided", vote["agreement"], vote["votes"], vote["failed"]))
    print("{:.2f}s instead of {:.2f}s, {} agents at once at most".format(
        metrics["wall_ms"] / 1000, metrics["sequential_ms"] / 1000, metrics["peak_parallel"]))


def main():
    reply = examine()
    print("{} agents on: {}".format(len(AGENTS), CHANGE))
    show(reply)
    report = gateway("GET", "/groups/{}/report".format(reply["id"]))
    print("The report of the gateway has {} lines: /groups/{}/report".format(len(report.splitlines()), reply["id"]))
    if reply["status"] == "escalated" or not reply["aggregation"]["decided"]:
        print("A person must decide.")
        return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except GatewayError as error:
        sys.exit(str(error))
