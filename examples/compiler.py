"""Answers a question by a plan that a model writes: independent steps run at once, each step starts when its inputs are there.

    FANOUT_URL=… FANOUT_TOKEN=… python3 examples/compiler.py ["A question"]

One call writes a plan in LLMCompiler's notation, `1. search("…")`, in which `$1` stands for the result of step 1. The gateway
checks it and runs it as a graph. A plan that it refuses is written once more, with the gateway's message. A last call joins the
results: it answers, or says why another plan is needed. The same plan again would give the same results, so it ends the program.

FANOUT_MODEL selects the model that plans and joins; the steps use the run's default model. The default is the gateway's simulated
model, which repeats what it is sent: then plan and answer are recorded ones, and the steps show what they would be asked.
"""
import contextlib
import http.client
import json
import os
import sys
from urllib.parse import urlsplit

MODEL = os.environ.get("FANOUT_MODEL")
ECHO = "sim/echo?ms=200"
QUESTION = "How much taller is the Tokyo Tower than the Eiffel Tower, and is either taller than the Shard?"
ROUNDS_MAX = 2

PLANNER = """Write a plan that answers the question. One step a line, numbered from 1, as name("argument"). The names are search and
math. $1 in an argument is the result of step 1. Steps that do not need each other run at once. End with join().
Example:
1. search("population of Oslo")
2. search("population of Bergen")
3. math("$1 / $2")
4. join()"""
JOINER = """Answer the question from the results of the steps. Begin with ANSWER: if they suffice; else with REPLAN: and what is missing."""

# What a planner and a joiner have answered, for the simulated model.
RECORDED_PLAN = """1. search("height of the Tokyo Tower in metres")
2. search("height of the Eiffel Tower in metres")
3. search("height of the Shard in metres")
4. math("($1) - ($2)")
5. math("max($1, $2) > $3")
6. join()"""
RECORDED_ANSWER = "ANSWER: The Tokyo Tower is 3 m taller; both are taller than the Shard."


class GatewayError(Exception):
    """A request that the gateway refused, in its words."""

    def __init__(self, error):
        super().__init__("{code}: {message}".format(**error))
        self.code = error["code"]


def gateway(method, path, body=None, content_type="application/json"):
    """Sends a request with the run's token. `body` is an object, or a text of another type. Returns the reply's JSON."""
    if not os.environ.get("FANOUT_TOKEN"):
        raise GatewayError({"code": "no_token", "message": "FANOUT_TOKEN is not set: open a run, for example with npm run token"})
    base = urlsplit(os.environ.get("FANOUT_URL") or "http://127.0.0.1:8787")
    connect = http.client.HTTPSConnection if base.scheme == "https" else http.client.HTTPConnection
    headers = {"authorization": "Bearer " + os.environ["FANOUT_TOKEN"], "content-type": content_type}
    sent = body.encode() if isinstance(body, str) else None if body is None else json.dumps(body)
    with contextlib.closing(connect(base.netloc, timeout=660)) as connection:
        connection.request(method, base.path.rstrip("/") + path, body=sent, headers=headers)
        reply = connection.getresponse()
        answer = json.loads(reply.read())
    if reply.status >= 300:
        raise GatewayError(answer["error"])
    return answer


def ask(system, prompt, recorded):
    """One call. The simulated model is sent what it has to say."""
    body = {"system": system, "prompt": prompt, "model": MODEL} if MODEL else {"prompt": recorded, "model": ECHO}
    return gateway("POST", "/query", {**body, "max_tokens": 500})["text"]


def plan_for(question, so_far):
    """A plan that the gateway accepts. One that it refuses is written once more."""
    prompt = "Question: {}{}".format(question, so_far)
    plan = ask(PLANNER, prompt, RECORDED_PLAN)
    try:
        return plan, check(plan)
    except GatewayError as refused:
        if refused.code not in ("invalid_graph", "invalid_request"):
            raise
        print("The plan was refused: {}".format(refused))
        plan = ask(PLANNER, "{}\n\nThis plan was refused:\n{}\n\n{}".format(prompt, plan, refused), RECORDED_PLAN)
        return plan, check(plan)


def check(plan):
    return gateway("POST", "/dag/validate", plan, "text/x-llmcompiler")["stats"]


def steps_of(plan):
    """The steps as the plan has them, by number, for the list that is printed."""
    lines = [line.strip().split(". ", 1) for line in plan.splitlines() if line.strip()[:1].isdigit()]
    return {line[0]: line[1] for line in lines if len(line) == 2}


def run(plan):
    """Runs a plan as a graph. Returns the reply, and the results of its steps by number."""
    reply = gateway("POST", "/dag", plan, "text/x-llmcompiler")
    return reply, {number: task["output"] or "! " + task["error"]["code"] for number, task in reply["tasks"].items()}


def show(plan, stats, reply, results):
    steps, metrics = steps_of(plan), reply["metrics"]
    print("Plan of {} steps, {} at once, {} one after another:".format(stats["total"], stats["max_width"], stats["max_depth"]))
    for number, result in results.items():
        print("  {}. {:<48} {}".format(number, steps.get(number, ""), " ".join(result.split())[:60]))
    print("  {} in {:.2f}s; the longest chain took {:.2f}s, all steps one after another {:.2f}s".format(
        reply["status"], metrics["wall_ms"] / 1000, metrics["critical_path_ms"] / 1000, metrics["sequential_ms"] / 1000))


def answer(question):
    """Plans, runs and joins until the joiner answers, at most ROUNDS_MAX times. Returns what the joiner said last."""
    so_far, plans, said = "", [], ""
    for _ in range(ROUNDS_MAX):
        plan, stats = plan_for(question, so_far)
        if plan in plans:
            return said + " (the planner has no other plan)"
        plans.append(plan)
        reply, results = run(plan)
        show(plan, stats, reply, results)
        listed = "\n".join("{}. {}".format(*each) for each in results.items())
        said = ask(JOINER, "Question: {}\n\nResults:\n{}".format(question, listed), RECORDED_ANSWER)
        if not said.startswith("REPLAN:"):
            return said
        so_far = "\n\nAn earlier plan was not enough:\n{}\nIts results:\n{}\n{}".format(plan, listed, said)
    return said


def main():
    question = sys.argv[1] if len(sys.argv) > 1 else QUESTION
    print(question + "\n")
    print("\n" + answer(question))
    spent = gateway("GET", "/budget")
    print("The run has spent ${:.6f} for {} calls".format(spent["usd"]["spent"], spent["calls"]["spent"]))


if __name__ == "__main__":
    try:
        main()
    except GatewayError as error:
        sys.exit(str(error))
