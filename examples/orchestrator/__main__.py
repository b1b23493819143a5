"""Agents examine a change at once: those that must not fail first, then the others. Their verdicts are put to a vote, and combined.

    FANOUT_URL=… FANOUT_TOKEN=… python3 examples/orchestrator ["The change"]
    … orchestrator --file CHANGE --output reviews

The gateway checks that the agents are independent before it asks any of them. Agents of tier P0 end before those of P1 begin, and
those before P2. A call that fails for a passing reason is retried by the gateway. A P0 agent that still fails is asked once more, by
FANOUT_FALLBACK_MODEL if that is set; if it fails again, the gateway notifies the operator's webhook, the report says *Escalate*, and
the program ends with 2. With `--webhook PORT`, the program is that webhook (see webhook.py). A failed P1 agent
warns, a failed P2 agent is noted. Every answer is stored where its agent declared it; the vote counts answers, never errors; a merge
combines the findings to one text. FANOUT_MODEL selects the model of all calls; the default is the run's.
"""
import argparse
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "stubs" / "python"))

from fanout import FanoutError, llm_log, llm_query, llm_report, llm_stream  # noqa: E402
from webhook import Webhook  # noqa: E402

MODEL = os.environ.get("FANOUT_MODEL")
FALLBACK_MODEL = os.environ.get("FANOUT_FALLBACK_MODEL") or MODEL
# How long to wait for a notification, which the gateway sends at once, and again after seconds if it is not accepted.
NOTIFIED_S = 60
CHANGE = "Retry a request after a timeout, at most three times, with a growing wait."

# Agents and what they are for. `weight`: how much a vote counts.
AGENTS = [
    {"id": "security", "tier": "P0", "weight": 3, "task": "Look for what an attacker could do with it."},
    {"id": "correctness", "tier": "P0", "weight": 3, "task": "Look for calls that must not be made twice."},
    {"id": "tests", "tier": "P1", "weight": 2, "task": "Say what no test covers: what is not tested?"},
    {"id": "cost", "tier": "P1", "weight": 1, "task": "Say what it costs under load."},
    {"id": "style", "tier": "P2", "weight": 1, "task": "Read names and comments."},
]
TIERS = {agent["id"]: agent["tier"] for agent in AGENTS}
FORM = {"type": "object",
        "properties": {"verdict": {"type": "string", "enum": ["accept", "reject"]},
                       "findings": {"type": "array", "items": {"type": "string"}}},
        "required": ["verdict", "findings"], "additionalProperties": False}


def call_of(agent, change, model, output):
    """An agent's call. It writes to a place of its own, which the gateway checks."""
    prompt = "{}\n\n# The change\n{}\n\nSay accept or reject, and list what you found.".format(agent["task"], change)
    return {"id": agent["id"], "tier": agent["tier"], "prompt": prompt, "schema": FORM, "max_tokens": 800,
            "output_location": str(output / (agent["id"] + ".json")), **({"model": model} if model else {})}


def ask(agents, change, output, model, notify):
    """One batch: tiers, independence, a weighted vote. Returns answers and errors by agent, and the last event with its group.

    `notify`: what of it the operator's webhook is notified of; None = what the run says.
    """
    vote = {"strategy": "vote", "rule": "weighted", "by": "json_key", "key": "verdict",
            "weights": {agent["id"]: agent["weight"] for agent in agents}}
    answers, errors, group = {}, {}, None
    for event in llm_stream([call_of(agent, change, model, output) for agent in agents], tiers="strict",
                            validate_independence="reject", aggregate=vote, error_style="null",
                            **({"webhook": notify} if notify else {})):
        if event["type"] == "group_started":
            group = event["id"]
        elif event["type"] == "slot" and event["error"] is None:
            answers[event["id"]] = json.loads(event["result"])
        elif event["type"] == "slot":
            errors[event["id"]] = event["error"]
        else:
            return answers, errors, {**event, "id": group}


def store(answers, output):
    """Every answer where its agent has declared it."""
    output.mkdir(parents=True, exist_ok=True)
    for name, answer in answers.items():
        (output / (name + ".json")).write_text(json.dumps(answer, indent=2), encoding="utf-8")


def synthesis_of(answers):
    """One text from all findings."""
    listed = "\n".join("{} ({}): {}".format(name, TIERS[name], json.dumps(answer)) for name, answer in answers.items())
    prompt = "Combine these findings to one text that names each once.\n\n# Findings\n" + listed
    return llm_query(prompt, model=MODEL, max_tokens=800)


def vote_of(answers):
    """The weighted vote over the answers that there are; None if neither side has more than half."""
    weights = {agent["id"]: agent["weight"] for agent in AGENTS}
    total = sum(weights[name] for name in answers)
    sides = {verdict: sum(weights[name] for name, answer in answers.items() if answer["verdict"] == verdict)
             for verdict in ("accept", "reject")}
    return next((verdict for verdict, weight in sides.items() if 2 * weight > total), None)


def report_of(ended, answers, errors, again, synthesis, vote, event, output):
    """The report: Markdown for people, and JSON."""
    failed = {each["agent"]: each for each in llm_report(ended["id"])["failed"]}
    for each in again:
        failed[each["agent"]] = each
    rows = [{"agent": name, "tier": tier, "status": "COMPLETE" if name in answers else "FAILED",
             "output_location": str(output / (name + ".json")) if name in answers else None,
             "key_findings": answers[name]["findings"] if name in answers else []} for name, tier in TIERS.items()]
    report = {"group": ended["id"], "agents": rows, "failed": [failed[name] for name in TIERS if name in errors],
              "strategies": ["vote", "merge"], "vote": vote, "synthesis": synthesis, "metrics": ended["metrics"],
              "notified": event}
    lines = ["# Report of {}".format(ended["id"]), "", "| Agent | Tier | Status | Output | Key findings |", "|---|---|---|---|---|"]
    lines += ["| {agent} | {tier} | {status} | {0} | {1} |".format(
        row["output_location"] or "-", "; ".join(row["key_findings"]).replace("|", "/") or "-", **row) for row in rows]
    if report["failed"]:
        lines += ["", "| Failed | Tier | Error | Impact | Action |", "|---|---|---|---|---|"]
        lines += ["| {agent} | {0} | {1} | {impact} | {action} |".format(TIERS[each["agent"]], each["error"]["code"], **each)
                  for each in report["failed"]]
    lines += ["", "Vote: {}. Together (merge): {}".format(vote or "undecided", synthesis), ""]
    (output / "report.json").write_text(json.dumps(report, indent=2), encoding="utf-8")
    (output / "report.md").write_text("\n".join(lines), encoding="utf-8")
    return report, lines


def second_chance(errors, change, output, webhook):
    """Asks failed P0 agents once more. Returns their answers, what is to be reported of those that failed again, and the group.

    Only now is it known that one fails for good, so only this batch asks for the notification of a failed P0.
    """
    failed = [agent for agent in AGENTS if agent["tier"] == "P0" and agent["id"] in errors]
    if not failed:
        return {}, [], None
    answers, _, ended = ask(failed, change, output, FALLBACK_MODEL, {"on_escalation": True} if webhook else None)
    return answers, llm_report(ended["id"])["failed"], ended["id"]


def notified(webhook, group, again):
    """The event of a P0 that failed for good, once the webhook has it, and a line that says so."""
    if webhook is None or not any(each["action"] == "Escalate" for each in again):
        return None, []
    event = webhook.wait_for("evt_{}_escalated".format(group), NOTIFIED_S)
    if event is None:
        return None, ["Nothing has arrived at the webhook within {} s.".format(NOTIFIED_S)]
    return event, ["Notified by {type} of {0}: {tier}, {code}.".format(group, type=event["type"], **event["data"])]


def main():
    form = argparse.RawDescriptionHelpFormatter
    read = argparse.ArgumentParser(prog="orchestrator", description=__doc__, formatter_class=form)
    read.add_argument("change", nargs="?", default=CHANGE)
    read.add_argument("--file", type=pathlib.Path, help="a file with the change")
    read.add_argument("--output", type=pathlib.Path, default=pathlib.Path("reviews"), help="folder of answers and report")
    read.add_argument("--webhook", type=int, metavar="PORT", help="receive the gateway's WEBHOOK_URL at http://127.0.0.1:PORT")
    given = read.parse_args()
    change = given.file.read_text(encoding="utf-8") if given.file else given.change
    if given.webhook is None:
        return examine(change, given.output, None)
    if not os.environ.get("WEBHOOK_SECRET"):
        read.error("--webhook: WEBHOOK_SECRET is not set; set it to the gateway's")
    with Webhook(given.webhook, os.environ["WEBHOOK_SECRET"]) as webhook:
        return examine(change, given.output, webhook)


def examine(change, output, webhook):
    """Asks, stores, reports. Returns the exit status."""
    print("{} agents on: {}".format(len(AGENTS), change.strip().splitlines()[0]))
    answers, errors, ended = ask(AGENTS, change, output, MODEL, {"on_end": True} if webhook else None)
    recovered, again, group = second_chance(errors, change, output, webhook)
    answers.update(recovered)
    errors = {name: error for name, error in errors.items() if name not in recovered}
    store(answers, output)
    vote = vote_of(answers)
    synthesis = synthesis_of(answers) if answers else "nothing was found"
    event, said = notified(webhook, group, again)
    report, lines = report_of(ended, answers, errors, again, synthesis, vote, event, output)
    print("\n".join(lines + said))
    escalated = [each["agent"] for each in report["failed"] if each["action"] == "Escalate"]
    llm_log("final_result", output=vote or "undecided", data={"escalated": escalated})
    if escalated or vote is None:
        print("A person must decide: {}".format("escalated by " + ", ".join(escalated) if escalated else "the vote decides nothing"))
        return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (FanoutError, OSError) as error:
        sys.exit("{}: {}".format(error.code, error) if isinstance(error, FanoutError) else str(error))
