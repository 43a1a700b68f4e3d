"""What lmemo raises. A message names the thing, the place, what was found and expected, and the way out."""


class Error(Exception):
    """All that lmemo raises, except for a wrong type (TypeError) and Ctrl-C (KeyboardInterrupt)."""


class InvalidArgument(Error, ValueError):
    """Something was asked for that cannot be."""


class IoError(Error, OSError):
    """The operating system said no."""


class Corruption(Error):
    """Bytes on disk are not what was written."""


class Incompatible(Error):
    """Written by another version, or by another program."""


class Busy(Error):
    """Somebody else holds what is needed."""


class NoSpace(Error, OSError):
    """The disk or the limit is full."""
