"""The `lmemo` command: the C++ command line, run inside the extension."""

import os
import sys

from lmemo._chat import chat_renderer
from lmemo._core import run_command_line
from lmemo._oracle import huggingface_oracle


def main() -> int:
    """Runs the command line and returns its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()  # What Python wrote comes before what the command writes.
    return run_command_line(sys.argv[1:], os.path.dirname(__file__), huggingface_oracle, chat_renderer)


if __name__ == "__main__":
    sys.exit(main())
