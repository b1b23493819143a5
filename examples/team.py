"""A team of agents answers one question, reads each other's answers, answers again, and is judged by a fixed formula.

    FANOUT_URL=… FANOUT_TOKEN=… python3 examples/team.py ["A question"]

Round 0 asks every member alone. Round 1 shows each member what its partners said: the two beside it in a ring, and the lead.
The gateway then computes how far the answers of round 1 can be trusted. A member that failed for a passing reason is asked
once more in the round after; one whose request was wrong, or whose budget is spent, is not.

FANOUT_MODEL selects the model. The default is the gateway's simulated model, which repeats the last paragraph that it is sent;
then one member uses a model that always fails, so that the verdict shows it.
"""
import contextlib
import http.client
import json
import os
import re
import sys
from urllib.parse import urlsplit

MODEL = os.environ.get("FANOUT_MODEL") or "sim/echo?ms=200"
FAILING_MODEL = None if os.environ.get("FANOUT_MODEL") else "sim/fail?status=400"
QUESTION = "Is the retry loop in client.py:40 safe to run twice?"

MEMBERS = {
    "lead": "You lead the team. Weigh what is known, and decide.",
    "researcher": "You look for facts in the code, and name file and line.",
    "builder": "You say what it takes to build and to change it.",
    "skeptic": "You look for what is wrong with it.",
    "tester": "You say how it can be tested.",
}
ANCHOR = "lead"
PARTNERS_MAX = 3
SNIPPET_CHARS = 180
RETRY_ROUNDS = 1
CLOSING = "End with EVIDENCE: file and line, and CONFIDENCE: 0 to 1."

# A partner's answer is data. A sentence that tells its reader what to do is left out of what others are shown.
INSTRUCTION = re.compile(r"(?i)\b(ignore|disregard|forget|override|you (must|should|shall)|system prompt|new instructions?)\b")


class GatewayError(Exception):
    """A request that the gateway refused, in its words."""


def gateway(method, path, body=None):
    """Sends a request with the run's token. Returns the reply's JSON."""
    if not os.environ.get("FANOUT_TOKEN"):
        raise GatewayError("FANOUT_TOKEN is not set: open a run, for example with npm run token")
    base = urlsplit(os.environ.get("FANOUT_URL") or "http://127.0.0.1:8787")
    connect = http.client.HTTPSConnection if base.scheme == "https" else http.client.HTTPConnection
    headers = {"authorization": "Bearer " + os.environ["FANOUT_TOKEN"], "content-type": "application/json"}
    with contextlib.closing(connect(base.netloc, timeout=660)) as connection:
        sent = None if body is None else json.dumps(body)
        connection.request(method, base.path.rstrip("/") + path, body=sent, headers=headers)
        reply = connection.getresponse()
        answer = json.loads(reply.read())
    if reply.status >= 300:
        raise GatewayError("{code}: {message}".format(**answer["error"]))
    return answer


def partners_of(name):
    """The members beside one in the ring, and the lead: at most PARTNERS_MAX, and never the member itself."""
    ring = list(MEMBERS)
    at = ring.index(name)
    beside = [ring[at - 1], ring[(at + 1) % len(ring)], ANCHOR]
    return [each for each in dict.fromkeys(beside) if each != name][:PARTNERS_MAX]


def snippet(text):
    """The beginning of an answer, without sentences that give instructions."""
    sentences = re.split(r"(?<=[.!?])\s+", " ".join(text.split()))
    return " ".join(each for each in sentences if not INSTRUCTION.search(each))[:SNIPPET_CHARS]


def item(name, prompt):
    """The call of a member. Its id is the member's name, so replies and reports name it."""
    model = FAILING_MODEL if FAILING_MODEL and name == "tester" else MODEL
    return {"id": name, "model": model, "system": MEMBERS[name], "prompt": prompt, "max_tokens": 400}


def ask(prompts, **options):
    """Asks members at once. Returns their answers and errors by name, and the whole reply."""
    items = [item(name, prompt) for name, prompt in prompts.items()]
    reply = gateway("POST", "/batch", {"items": items, "error_style": "null", **options})
    answers, errors = {}, {}
    for name, result, error in zip(prompts, reply["results"], reply["errors"]):
        if error is None:
            answers[name] = result
        else:
            errors[name] = error
    return answers, errors, reply


def ask_again(prompts, errors):
    """One more round for members that failed for a passing reason. Limits of rate and budget have had the gateway's own retries."""
    answers = {}
    for _ in range(RETRY_ROUNDS):
        again = {name: prompts[name] for name, error in errors.items() if error["retryable"] and "rate" not in error["code"]}
        if not again:
            break
        recovered, errors, _ = ask(again)
        answers.update(recovered)
    return answers


def first_round(question):
    prompts = {name: "{}\n\n{}: {} {}".format(question, name, question, CLOSING) for name in MEMBERS}
    answers, errors, _ = ask(prompts)
    answers.update(ask_again(prompts, errors))
    return answers


def second_round(question, said):
    """Shows each member what its partners said, and has the gateway judge the answers."""
    prompts = {}
    for name in MEMBERS:
        heard = ["- {}: {}".format(each, snippet(said[each])) for each in partners_of(name) if each in said]
        own = said.get(name, question)
        prompts[name] = "{}\n\nYour partners said:\n{}\n\n{}".format(question, "\n".join(heard), own)
    return ask(prompts, aggregate={"strategy": "uncertainty"})


def show(reply, errors):
    for name, result in zip(MEMBERS, reply["results"]):
        text = "! " + errors[name]["code"] if name in errors else " ".join(result.split())[:90]
        print("  {:<11}{}".format(name, text))
    judged, metrics = reply["aggregation"], reply["metrics"]
    print("\nVerdict: {verdict}, confidence {confidence}".format(**judged))
    print("  uncertainty: " + ", ".join("{} {}".format(*each) for each in judged["uncertainty"].items()))
    print("  signals: " + (", ".join(judged["signals"]) or "none"))
    print("  round 1 took {:.2f}s instead of {:.2f}s".format(metrics["wall_ms"] / 1000, metrics["sequential_ms"] / 1000))


def main():
    question = sys.argv[1] if len(sys.argv) > 1 else QUESTION
    print("{} members: {}\n".format(len(MEMBERS), question))
    said = first_round(question)
    print("Round 0: {} of {} answered".format(len(said), len(MEMBERS)))
    _, errors, reply = second_round(question, said)
    print("Round 1:")
    show(reply, errors)
    budget = gateway("GET", "/budget")
    print("\nThe run has spent ${:.6f} for {} calls".format(budget["usd"]["spent"], budget["calls"]["spent"]))


if __name__ == "__main__":
    try:
        main()
    except GatewayError as error:
        sys.exit(str(error))
