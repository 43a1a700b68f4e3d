"""Where the `lmemo` command begins.

It takes a while until Python has loaded the package, and a Ctrl-C would end that with a traceback. So signals that end a
command wait here, outside the package, until the command can deal with them; and again when it is through.
"""

import signal


def main() -> int:
    """Runs the command line and returns its exit code, for a process that ends then."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    from lmemo.__main__ import main as run

    return run()
