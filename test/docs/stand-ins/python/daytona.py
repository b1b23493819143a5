"""Stands for daytona 0.226.1: the calls of docs/sandboxes.md, and no others."""
from _place import Place, only


class CreateSandboxFromSnapshotParams:
    def __init__(self, **params):
        only(params, ("env_vars", "domain_allow_list", "ephemeral"))
        if not isinstance(params.get("domain_allow_list"), str):
            raise TypeError("expected a list of domains as one text, separated by commas")
        self.env_vars = params.get("env_vars") or {}


class _Fs:
    def __init__(self, place):
        self._place = place

    def upload_file(self, src, dst):
        self._place.write(dst, src)


class _Answer:
    def __init__(self, done):
        self.exit_code, self.result = done.returncode, done.stdout + done.stderr


class _Process:
    def __init__(self, place):
        self._place = place

    def code_run(self, code):
        return _Answer(self._place.run("python3", "-c", code))


class _Sandbox:
    def __init__(self, place):
        self._place, self.fs, self.process = place, _Fs(place), _Process(place)

    def delete(self):
        self._place.remove()


class Daytona:
    def create(self, params):
        if not isinstance(params, CreateSandboxFromSnapshotParams):
            raise TypeError("expected CreateSandboxFromSnapshotParams")
        return _Sandbox(Place(params.env_vars))
