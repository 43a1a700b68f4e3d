"""Types of what goes into a key and into a store."""

from __future__ import annotations

from lmemo._core import LongValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol, TypeAlias

    from typing_extensions import Buffer

    class NumpyScalar(Protocol):
        """A numpy.bool_, an integer or a float of up to 64 bits. numpy itself is not needed."""

        @property
        def dtype(self) -> Any: ...
        def item(self) -> Any: ...

    class NumpyArray(Protocol):
        """A numpy.ndarray, which type checkers take for a Buffer only from Python 3.12 on."""

        @property
        def __array_interface__(self) -> dict[str, Any]: ...

    BytesLike: TypeAlias = Buffer | NumpyArray
    FieldInput: TypeAlias = None | bool | int | float | str | bytes | bytearray | LongValue | NumpyScalar

FieldValue: TypeAlias = None | bool | int | float | str | bytes | LongValue
