"""Agents of several kinds work on files: they read them, propose edits and review each other's; then the safe ones are applied.

    FANOUT_URL=… FANOUT_TOKEN=… python3 examples/coordinator 'review "security" auth.py AND test auth.py AND docs README.md'
    … coordinator run --task "make login safe" --files auth.py --parallel     a model splits free text into tasks
    … coordinator monitor [--once]           what the newest request does, every two seconds
    … coordinator apply PROPOSAL [--all]     the edits that a review approved, or all; never one that conflicts
    … coordinator worker [--tty]             serves the items of command-line agents
    … coordinator writes                     50 writers write ten times each: nothing is lost or duplicated
"""
import argparse
import concurrent.futures
import json
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "stubs" / "python")]

import agents  # noqa: E402
import edits  # noqa: E402
from coordinate import MAX_WORKERS, coordinate  # noqa: E402
from documents import latest, visibility  # noqa: E402
from fanout import FanoutError, llm_events, llm_log  # noqa: E402

COMMANDS = ("run", "monitor", "apply", "worker", "writes")


def apply(given):
    path = pathlib.Path(given.request or latest_proposal(given.output))
    proposal = json.loads(path.read_text(encoding="utf-8"))
    applied = set(proposal.get("applied", []))
    fresh = edits.judge([dict(edit) for edit in proposal["edits"] if edit["id"] not in applied], ".")
    chosen = edits.applicable(fresh, ".", given.all)
    edits.apply(chosen, ".")
    done = {edit["id"] for edit in chosen}
    for edit in fresh:
        if edit["id"] in done:
            print("  applied {id} {path}".format(**edit))
        else:
            print("  left    {id} {path}: {}".format(edits.state_of(edit), **edit))
    # What was applied once is not applied again.
    path.write_text(json.dumps({**proposal, "applied": sorted(applied | done)}, indent=2), encoding="utf-8")
    print("{} of {} edits applied".format(len(applied | done), len(proposal["edits"])))


def latest_proposal(output):
    found = sorted(latest(output).glob("proposal_*.json"))
    if not found:
        raise ValueError("the newest request has no proposal yet")
    return found[-1]


def monitor(given):
    while True:
        seen = visibility(latest(given.output))
        print(json.dumps(seen), flush=True)
        if given.once or seen["status"] != "active":
            return
        time.sleep(2)


def write_all(writers=50, writes=10):
    """Writes from many threads at once, and counts what arrived in the run's log."""

    def write(writer):
        for at in range(writes):
            llm_log("agent_write", data="{}-{}".format(writer, at))

    with concurrent.futures.ThreadPoolExecutor(writers) as pool:
        list(pool.map(write, range(writers)))
    found = [event["data"] for event in llm_events() if event["event_type"] == "agent_write"]
    lost, doubled = writers * writes - len(set(found)), len(found) - len(set(found))
    print("{} writes by {} writers: {} lost, {} duplicated".format(writers * writes, writers, lost, doubled))
    return 1 if lost or doubled else 0


def main():
    form = argparse.RawDescriptionHelpFormatter
    read = argparse.ArgumentParser(prog="coordinator", description=__doc__, formatter_class=form)
    read.add_argument("command", nargs="?", help="run (may be left out), monitor, apply, worker, writes")
    read.add_argument("request", nargs="?", help="a request; for apply a proposal, by default the newest")
    read.add_argument("--task", help="what to do, in free words: a model makes tasks of it")
    read.add_argument("--files", nargs="*", default=[], help="the files of --task")
    read.add_argument("--parallel", action=argparse.BooleanOptionalAction, help="side by side: the default without --task")
    read.add_argument("--conflicts", choices=["report", "reject", "serialize"], default="report", help="tasks that name one file")
    read.add_argument("--output", default="coordinator-output", help="folder of documents")
    read.add_argument("--verbose", action="store_true", help="print what agents say")
    read.add_argument("--once", action="store_true", help="monitor: look once")
    read.add_argument("--all", action="store_true", help="apply: also what no review approved")
    read.add_argument("--tty", action="store_true", help="give command-line agents a terminal")
    read.add_argument("--width", type=int, default=MAX_WORKERS, help="command-line agents side by side in one worker")
    given = read.parse_args()
    if given.command not in COMMANDS:
        given.command, given.request = "run", given.command or given.request
    if given.parallel is None:
        given.parallel = given.task is None
    programs = {"run": coordinate, "monitor": monitor, "apply": apply, "worker": lambda _: agents.serve(given.width, given.tty),
                "writes": lambda _: write_all()}
    return programs[given.command](given)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (FanoutError, ValueError, OSError) as error:
        sys.exit("{}: {}".format(error.code, error) if isinstance(error, FanoutError) else str(error))
