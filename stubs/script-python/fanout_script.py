"""Workflow scripts on a fanout gateway, for Python 3.8 and newer. Needs fanout.py in the same folder.

    from fanout_script import agent, parallel, pipeline, phase, log, budget, workflow

    bugs = agent("List the bugs in ...", schema=BUGS, label="find")
    checked = parallel([lambda bug=bug: agent(f"Is this a bug? {bug}") for bug in bugs])

agent(prompt, schema, model, label, phase)  one call; its text, or the value that fits
parallel(thunks)            their results in order, None for one that fails
pipeline(items, *stages)    each item through all stages: stage(value, item, index)
phase(name), log(text)      name what follows, and report; both are in the run's log
budget                      total, spent(), remaining(), in US dollars; None = no limit
workflow(file, args)        the result of another script's main(args)
failures                    calls that failed: label, phase, code, message

A call that fails for a reason of the infrastructure is None and an entry in
`failures`; it is never an answer. A call that the budget does not cover raises
BudgetError, which ends a script that does not catch it.
"""

import contextvars
import json
import runpy
from concurrent.futures import ThreadPoolExecutor

import fanout

# Calls that wait at once: the gateway starts as many of them as the run may have.
_THREADS_MAX = 64

failures = []
_phase = contextvars.ContextVar("phase", default=None)


class BudgetError(Exception):
    """A call that the budget does not cover."""


class _Budget:
    """Figures of the run, as they are now."""

    @property
    def total(self):
        return fanout.llm_budget()["usd"]["limit"]

    def spent(self):
        return fanout.llm_budget()["usd"]["spent"]

    def remaining(self):
        return fanout.llm_budget()["usd"]["remaining"]


budget = _Budget()


def agent(prompt, schema=None, model=None, label=None, phase=None, **options):
    """Makes one call. Other options are the fields of POST /query."""
    about = {"label": label or str(prompt)[:60], "phase": phase or _phase.get()}
    fields = {"prompt": str(prompt), "model": model, "schema": schema, **options}
    sent = {name: value for name, value in fields.items() if value is not None}
    try:
        answer = fanout._call("/query", sent, expects="text")
    except fanout.FanoutError as error:
        failures.append({**about, "code": error.code, "message": str(error)})
        if error.code in ("budget_exhausted", "infeasible"):
            raise BudgetError(str(error)) from error
        return None
    if schema is None:
        return answer["text"]
    return answer["json"] if "json" in answer else json.loads(answer["text"])


def parallel(thunks):
    """Runs functions at once. The result of one that raises is None."""
    thunks = list(thunks)
    if not thunks:
        return []
    with ThreadPoolExecutor(min(len(thunks), _THREADS_MAX)) as pool:
        # Each has the phase, and the child run, of who calls.
        contexts = [contextvars.copy_context() for _ in thunks]
        started = [
            pool.submit(context.run, _settled, thunk)
            for context, thunk in zip(contexts, thunks)
        ]
        return [each.result() for each in started]


def pipeline(items, *stages):
    """Passes each item through all stages: none waits for another item."""

    def through(item, index):
        value = item
        for stage in stages:
            value = stage(value, item, index)
            if value is None:
                return None
        return value

    return parallel(
        [
            lambda item=item, index=index: through(item, index)
            for index, item in enumerate(items)
        ]
    )


def phase(name):
    """Names what follows, until the next name."""
    _phase.set(name)
    fanout.llm_log("phase", output=name)


def log(text):
    """Reports something to who watches."""
    fanout.llm_log("log", output=str(text))


def workflow(file, args=None):
    """Runs main(args) of another script, with the same budget."""
    return runpy.run_path(file)["main"](args)


def _settled(thunk):
    try:
        return thunk()
    except BudgetError:
        return None
    except Exception as error:  # A stage of one item must not end the others.
        about = {"label": None, "phase": _phase.get()}
        failures.append({**about, "code": "script_error", "message": str(error)})
        return None
