"""Runs commands of experiential's own program one after the other in one process: to start it takes seconds each time."""

import json
import sys

from exp.cli import main

for args in json.loads(sys.argv[1]):
    sys.argv = ["exp", *args]
    try:
        main()
    except SystemExit as end:
        if end.code:
            sys.exit(f"exp {' '.join(args)} ended with {end.code}")
