"""For every test: Ctrl-C means what it means at a terminal, also where a background job started the tests."""

import signal

# A shell starts background jobs with SIGINT ignored, and processes that the tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
