"""Stands for e2b-code-interpreter 2.11.5 (e2b 2.63.0): the calls of docs/sandboxes.md, and no others."""
from _place import Place, only


class _Files:
    def __init__(self, place):
        self._place = place

    def write(self, path, data):
        self._place.write(path, data.encode() if isinstance(data, str) else data)


class _Logs:
    def __init__(self, stdout, stderr):
        self.stdout, self.stderr = stdout, stderr


class Execution:
    def __init__(self, logs, error):
        self.logs, self.error = logs, error


class Sandbox:
    @classmethod
    def create(cls, *, envs=None, network=None):
        only(network or {}, ("allow_out", "deny_out"))
        # The SDK takes lists of addresses, blocks or host names.
        for rules in (network or {}).values():
            if not all(isinstance(rule, str) and rule for rule in rules):
                raise TypeError("expected a list of hosts")
        return cls(envs or {})

    def __init__(self, envs):
        self._place = Place(envs)
        self.files = _Files(self._place)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._place.remove()

    def run_code(self, code):
        done = self._place.run("python3", "-c", code)
        return Execution(_Logs([done.stdout], [done.stderr]), done.stderr if done.returncode else None)
