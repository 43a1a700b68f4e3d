"""Types of the values in a key."""

from __future__ import annotations

from lmemo._core import LongValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol, TypeAlias

    class NumpyScalar(Protocol):
        """A numpy.bool_, an integer or a float of up to 64 bits. numpy itself is not needed."""

        @property
        def dtype(self) -> Any: ...
        def item(self) -> Any: ...

    FieldInput: TypeAlias = None | bool | int | float | str | bytes | bytearray | LongValue | NumpyScalar

FieldValue: TypeAlias = None | bool | int | float | str | bytes | LongValue
