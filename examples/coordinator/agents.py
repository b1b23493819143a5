"""The agents: how a task becomes a call, who is there at all, and how a program without an address is run."""
import contextlib
import os
import pathlib
import pty
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import threading

from edits import FORM, SCHEMA, edits_in, read
from fanout import llm_context, llm_run, llm_work, llm_worker_token
from request import REVIEWERS

MODEL = os.environ.get("FANOUT_MODEL")
# A model of an upstream of the kind `pull`: its calls wait for the program CODEX_COMMAND, which a worker of this machine starts.
PULL_MODEL = os.environ.get("FANOUT_PULL_MODEL")
COMMAND = shlex.split(os.environ.get("CODEX_COMMAND") or "codex exec -")
LEASE_S = float(os.environ.get("COORDINATOR_LEASE_S") or 15)
REVIEW = {"type": "object", "properties": {"approved": {"type": "boolean"}, "reason": {"type": "string"}},
          "required": ["approved", "reason"], "additionalProperties": False}
# A terminal passes no longer line to a program.
TTY_LINE_BYTES = 4000


def is_pull(agent):
    return agent == "codex" and PULL_MODEL is not None


def missing(agent):
    """Why an agent cannot work, or None."""
    if is_pull(agent) and shutil.which(COMMAND[0]) is None:
        why = "the agent {} has no program: {} is not installed; set CODEX_COMMAND, or unset FANOUT_PULL_MODEL"
        return why.format(agent, COMMAND[0])
    return None


def text_of(files):
    """The texts of files as an agent reads them."""
    return "".join('<file path="{}">\n{}\n</file>\n'.format(file, read(file)) for file in files)


def sizes_of(files):
    """The bytes of all files. Raises ValueError for one that cannot be read: nothing is sent for a file that is not there."""
    total = 0
    for file in files:
        path = pathlib.Path(file)
        if not path.is_file():
            raise ValueError("there is no file {} in {}".format(file, pathlib.Path.cwd()))
        try:
            total += len(read(path).encode())
        except UnicodeDecodeError:
            raise ValueError("{} is not a text in UTF-8".format(file)) from None
    return total


def call_of(task, agent):
    """The call of a task. Its files are a context of the run, which is stored once for all calls that read the same files."""
    prompt = "{}: {}\nFiles: {}\n\n{}".format(task["type"], task["description"], ", ".join(task["files"]) or "none", FORM)
    call = {"id": str(task["id"]), "prompt": prompt, "max_tokens": 4000, "files": task["files"],
            "output_location": "task " + str(task["id"])}
    return addressed(call, agent, task["files"], SCHEMA)


def review_of(edit, agent):
    """The call of another agent that reviews an edit."""
    shown = '<edit path="{path}">\n<search>\n{search}\n</search>\n<replace>\n{replace}\n</replace>\n</edit>'.format(**edit)
    asked = "Review this edit of another agent ({}). Approve it only if it fits the file, does what it says, and breaks nothing."
    prompt = asked.format(edit["why"]) + "\n\n" + shown
    files = [edit["path"]] if edit["search"] else []
    return addressed({"id": edit["id"], "prompt": prompt, "max_tokens": 1000}, reviewer_of(agent), files, REVIEW)


def reviewer_of(agent):
    return REVIEWERS.get(agent, "glm")


def addressed(call, agent, files, schema):
    if is_pull(agent):
        # A program reads its prompt only, and answers with a text.
        return {**call, "model": PULL_MODEL, "prompt": text_of(files) + "\n" + call["prompt"]}
    stored = {"context": llm_context(text_of(files))} if files else {}
    return {**call, **stored, "schema": schema, **({"model": MODEL} if MODEL else {})}


def start_worker(width, tty):
    """Another process, whose token can do nothing but the work of this run. It ends with this one: its input ends then."""
    granted = llm_worker_token()
    env = {**os.environ, "FANOUT_TOKEN": granted["token"], "COORDINATOR_RUN": granted["run_id"]}
    here = os.path.dirname(os.path.abspath(__file__))
    command = [sys.executable, here, "worker", "--width", str(width), *(["--tty"] if tty else [])]
    return subprocess.Popen(command, env=env, stdin=subprocess.PIPE)


def serve(width, tty):
    """Serves the items of command-line agents, `width` side by side, until its parent has gone."""
    programs = set()

    def parent_gone():
        sys.stdin.buffer.read()
        for program in list(programs):
            stop(program)
        os._exit(0)

    if os.environ.get("COORDINATOR_RUN"):
        threading.Thread(target=parent_gone, daemon=True).start()

    def work(item):
        return run_program(item, tty, programs)

    llm_work(work, os.environ.get("COORDINATOR_RUN") or llm_run()["id"], width=width, lease_s=LEASE_S)


def run_program(item, tty, programs):
    """Runs the agent's program for an item. Returns what it printed."""
    prompt = item["prompt"]
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write(prompt)
        file.flush()
        command = [word.replace("{prompt_file}", file.name) for word in COMMAND]
        sent = prompt if command == COMMAND else ""
        text, status = (in_terminal if tty else in_pipe)(command, sent, item["stop"], programs)
    if status:
        return {"error": {"message": "the agent ended with {}: {}".format(status, text.strip()[-300:]), "retryable": False}}
    used = {"prompt_tokens": len(prompt.encode()) // 4, "completion_tokens": len(text.encode()) // 4}
    return {"text": text.strip() or "(no output)", "usage": used}


@contextlib.contextmanager
def started(command, programs, gone, **streams):
    """A program in a session of its own, so that what it starts ends with it."""
    program = subprocess.Popen(command, start_new_session=True, stderr=subprocess.STDOUT, **streams)
    programs.add(program)
    threading.Thread(target=lambda: gone.wait() and stop(program), daemon=True).start()
    try:
        yield program
    finally:
        stop(program)
        programs.discard(program)


def stop(program):
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(program.pid, signal.SIGKILL)


def in_pipe(command, prompt, gone, programs):
    with started(command, programs, gone, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        out, _ = program.communicate(prompt.encode())
        return out.decode(errors="replace"), program.returncode


def in_terminal(command, prompt, gone, programs):
    """For a program that works only at a terminal: it gets one, without an echo of what is typed."""
    if any(len(line.encode()) > TTY_LINE_BYTES for line in prompt.split("\n")):
        why = "a terminal takes no line of more than {} bytes; have CODEX_COMMAND read {{prompt_file}}"
        return why.format(TTY_LINE_BYTES), 1
    master, slave = pty.openpty()
    settings = termios.tcgetattr(slave)
    settings[3] &= ~termios.ECHO
    termios.tcsetattr(slave, termios.TCSANOW, settings)
    read_back = b""
    with started(command, programs, gone, stdin=slave, stdout=slave) as program:
        os.close(slave)
        unsent = (prompt + "\n\x04").encode() if prompt else b""
        while True:
            readable, writable, _ = select.select([master], [master] if unsent else [], [])
            if readable:
                try:
                    piece = os.read(master, 65536)
                except OSError:  # The program has closed its terminal.
                    break
                if not piece:
                    break
                read_back += piece
            elif writable:
                unsent = unsent[os.write(master, unsent[:512]):]
        status = program.wait()
    os.close(master)
    # Colours and the ends of lines are the terminal's.
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", read_back.decode(errors="replace")).replace("\r\n", "\n"), status


def edits_of(task, agent, output):
    """The edits in an agent's output, each with an id, its task and its agent."""
    summary, found = edits_in(output)
    whose = {"task": task["id"], "agent": agent, "type": task["type"]}
    return summary, [{"id": "{}.{}".format(task["id"], number + 1), **whose, "path": each["path"], "search": each["search"],
                      "replace": each["replace"], "why": str(each.get("why", ""))} for number, each in enumerate(found)]
