"""The `lmemo` command: the C++ command line, run inside the extension."""

import sys

from lmemo import __version__


def main() -> int:
    """Runs the command line and returns its exit code."""
    print(f"lmemo {__version__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
