"""Types of what goes into a key and into a store."""

from __future__ import annotations

from lmemo._core import LongValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
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

    class ArrowArrayLike(Protocol):
        """A pyarrow.Array, or any other column that offers the Arrow C data interface."""

        def __arrow_c_array__(self, requested_schema: Any = None) -> Any: ...

    class ArrowStreamLike(Protocol):
        """A pyarrow.ChunkedArray, a polars.Series, …"""

        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...

    Texts: TypeAlias = Iterable[str | bytes] | ArrowArrayLike | ArrowStreamLike | NumpyArray
    BytesLike: TypeAlias = Buffer | NumpyArray
    FieldInput: TypeAlias = None | bool | int | float | str | bytes | bytearray | LongValue | NumpyScalar

FieldValue: TypeAlias = None | bool | int | float | str | bytes | LongValue
