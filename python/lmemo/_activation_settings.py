"""Whose states these are, and where, in which dtype and up to which size they are kept: identity, settings and limit of lmemo.activations."""

from __future__ import annotations

import logging
import numbers
import os
import re
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from . import _core
from ._core import Store, StoreBase
from ._errors import Error

logger = logging.getLogger("lmemo.activations")

GIB = 1024**3
_FLOATS = ("float16", "bfloat16", "float32")

# --------------------------------------------------------------------------------------------------------------- identity


class ModelIdentity(str):
    """The name of a model with all that tells it from others of that name. It is a str, so it goes wherever a name goes.

        ModelIdentity("gpt2", revision="607a30d", adapter="runs/7", dtype="bfloat16", weights=weights_digest(model))

    Each field has its own name in the store, and `explain` says which one differs.
    """

    fields: Mapping[str, str | int | float | bool]
    _keys: _core.ActivationKeys  # Made at first use.

    def __new__(cls, name: str, **fields: str | int | float | bool | None) -> ModelIdentity:
        made = super().__new__(cls, name)
        made.fields = MappingProxyType({key: value for key, value in fields.items() if value is not None})
        return made

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ModelIdentity):
            return str(self) == str(other) and self.fields == other.fields
        return str(self) == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(str(self))

    def __repr__(self) -> str:
        return f"ModelIdentity({', '.join([repr(str(self)), *(f'{name}={value!r}' for name, value in self.fields.items())])})"

    def __reduce__(self) -> Any:
        return _make_identity, (str(self), dict(self.fields))


def _make_identity(name: str, fields: dict[str, Any]) -> ModelIdentity:
    return ModelIdentity(name, **fields)


_plain_keys: dict[str, _core.ActivationKeys] = {}


def keys_of(model_name: str) -> _core.ActivationKeys:
    if type(model_name) is str and (plain := _plain_keys.get(model_name)) is not None:
        return plain
    if not isinstance(model_name, str):
        raise TypeError(f"model_name: expected str, got {type(model_name).__name__}")
    name = str.__str__(model_name)
    if not isinstance(model_name, ModelIdentity):
        plain = _plain_keys[name] = _core.ActivationKeys({"model": name})
        return plain
    if "_keys" not in vars(model_name):
        model_name._keys = _core.ActivationKeys({**model_name.fields, "model": name})
    return model_name._keys


# -------------------------------------------------------------------------------------------------------------- settings


class Backend:
    """A store in use, with what belongs to it."""

    def __init__(self, store: StoreBase, where: Path | str, *, is_ours: bool) -> None:
        self.store = store
        self.where = where
        self.is_ours = is_ours
        self.native = _core.NativeActivations(store)
        self.has_torch = False
        self.unflushed = 0
        self.used: int | None = None  # What all entries take, as far as is known.
        self.is_told_read_only = False
        self.writers = 1  # Processes that write to it, as far as is known.

    def with_torch(self) -> _core.NativeActivations:
        if self.has_torch:
            return self.native
        import torch

        with _lock:
            if self.has_torch:
                return self.native
            names = ("float16", "bfloat16", "float32", "float64", "int64", "int32", "int16", "int8", "uint8", "bool")
            # The C function under torch.utils.dlpack.from_dlpack, where it is: a third of the time.
            from_dlpack = getattr(torch._C, "_from_dlpack", None) or torch.utils.dlpack.from_dlpack
            self.native.use_torch(torch.empty, from_dlpack, {name: getattr(torch, name) for name in names}, _plain_keys, keys_of)
            self.has_torch = True
        return self.native


_lock = threading.RLock()  # Guards the settings below.
_backend: Backend | None = None
limit_bytes: int | None = None  # None: no limit; 0: caching is off.
_is_enforced_on_write = True
wanted_dtype: str | None = None
is_compressed = False


def _open(path: str | os.PathLike[str] | None) -> Backend:
    # Their limit is set_cache_limit's business.
    store = Store(max_bytes=0) if path is None else Store(path, max_bytes=0)
    return Backend(store, Path(store.path), is_ours=True)


def set_cache_backend(backend: StoreBase | str | os.PathLike[str] | None) -> None:
    """Where everything is kept from now on: a Store, a path, or None for the default store.

    Raises TypeError for anything else and ValueError for a URL whose scheme is not supported.
    """
    global _backend
    chosen: Backend | None
    if backend is None:
        chosen = None
    elif isinstance(backend, StoreBase):
        where = backend.path if isinstance(backend, Store) else "memory"
        chosen = Backend(backend, where, is_ours=False)
    elif isinstance(backend, (str, os.PathLike)):
        text = os.fspath(backend)
        scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+)://", text)
        if scheme and scheme.group(1).lower() == "file":
            place = urlsplit(text)
            if place.netloc not in ("", "localhost") or not place.path:
                raise ValueError(f"{text!r}: expected file:///path; a URL has the name of a machine after its second slash")
            text = unquote(place.path)
        elif scheme:
            raise ValueError(
                f"Unsupported cache backend URI scheme: {text!r}. Supported are file:// and plain paths of the local file system."
            )
        chosen = _open(text)
    else:
        raise TypeError(f"Expected CacheBackend (a lmemo Store), str, path or None, got {type(backend).__name__}")
    with _lock:
        _let_go(_backend)
        _backend = chosen
        _prepare_again()


def _let_go(backend: Backend | None) -> None:
    # Not closed: whoever uses it in another thread goes on. It is published, so that nothing waits for the end of the process.
    if backend is not None and backend.is_ours:
        flush(backend)


def flush(backend: Backend) -> None:
    """A failure costs later hits, not this run."""
    try:
        backend.store.flush()
    except Error as error:
        logger.warning(f"[CACHE] not safe from a power cut yet: {error}")


def current() -> Backend:
    global _backend
    if _backend is None:
        with _lock:
            if _backend is None:
                _backend = _open(os.environ.get("LMEMO_ACTIVATIONS_STORE") or None)
    return _backend


def get_backend() -> StoreBase:
    """The store in use."""
    return current().store


def set_cache_limit(gb: float | None = None, *, enforce: Literal["write", "manual"] = "write") -> None:
    """How much all activations together may take, in GiB. None: no limit. 0: nothing is stored or found.

    The limit holds while writing; with enforce="manual" only evict() applies it.
    """
    global limit_bytes, _is_enforced_on_write
    if enforce not in ("write", "manual"):
        raise ValueError(f"enforce: expected 'write' or 'manual', got {enforce!r}")
    if gb is not None and not isinstance(gb, numbers.Real):  # numpy's too.
        raise TypeError(f"gb: expected None or a number, got {type(gb).__name__}")
    if gb is not None and not 0 <= gb < float("inf"):
        raise ValueError(f"gb: expected None or a number from 0 on, got {gb!r}")
    with _lock:
        limit_bytes = None if gb is None else int(gb * GIB)
        if gb and limit_bytes == 0:
            limit_bytes = 1
        _is_enforced_on_write = enforce == "write"
        _prepare_again()
        if _backend is not None:
            _backend.used = None
        if limit_bytes and _is_enforced_on_write and _backend is not None:
            _make_room(_backend, 0)


def set_cache_dtype(dtype: str | None = None) -> None:
    """In which dtype floats are stored from now on: "float16", "bfloat16", "float32", or None for the one they have."""
    global wanted_dtype
    if dtype is not None and dtype not in _FLOATS:
        raise ValueError(f"Unknown dtype: {dtype!r}. Valid: {list(_FLOATS)} or None")
    with _lock:
        wanted_dtype = dtype
        _prepare_again()


def set_cache_compression(compression: Literal["zstd"] | None = None) -> None:
    """Lossless compression of float16 and bfloat16 from now on: "zstd" (byte planes), or None. What is stored stays as it is."""
    global is_compressed
    if compression not in (None, "zstd"):
        raise ValueError(f"Unknown compression: {compression!r}. Valid: 'zstd' or None")
    is_compressed = compression is not None


def enable_cache_logging(level: int = logging.INFO) -> None:
    """Shows hits, misses and evictions on stderr. One handler, however often this is called."""
    logger.setLevel(level)
    for handler in logger.handlers:
        if getattr(handler, "_is_lmemos", False):
            handler.setLevel(level)
            return
    handler = logging.StreamHandler()
    handler.setLevel(level)
    handler.setFormatter(logging.Formatter("%(message)s"))
    handler._is_lmemos = True  # type: ignore[attr-defined]
    logger.addHandler(handler)


def is_off() -> bool:
    return limit_bytes == 0


# ---------------------------------------------------------------------------------------------------------------- limits


def evict() -> None:
    """Makes the least recently used entries go until the limit holds. Without a limit nothing happens."""
    if limit_bytes:
        _make_room(current(), 0)


def _make_room(backend: Backend, for_bytes: int) -> None:
    """Until so many more bytes fit under the limit, with some to spare, so that not every write has to make room."""
    limit = limit_bytes
    if not limit:
        return
    backend.native.refresh()  # Others write here too.
    if isinstance(backend.store, Store):
        backend.writers = max(1, sum(1 for _ in (Path(backend.store.path) / "writing").glob("*")))
    used = backend.native.stored_bytes()
    if used + for_bytes > limit - limit // 8:
        entries, size = backend.native.evict(max(0, limit - limit // 4 - for_bytes))
        used = backend.native.stored_bytes()
        if entries:
            logger.info(f"[CACHE] Evicted {size / GIB:.3f} GB ({entries} entries) to stay under {limit / GIB:.3f} GB")
    backend.used = used


def put_with_room(backend: Backend, byte_count: int, put: Any) -> bool:
    """Calls put() where its bytes have room. False: not stored, and the user heard why."""
    if is_off():
        return False
    if getattr(backend.store, "read_only", False):
        if not backend.is_told_read_only:
            logger.warning(f"[CACHE] nothing is stored: {backend.where} was opened read-only")
        backend.is_told_read_only = True
        return False
    limit = limit_bytes if _is_enforced_on_write else None
    if limit is not None:
        if byte_count > limit // 2:
            logger.warning(f"[CACHE] {byte_count} bytes at once are not stored: the limit is {limit} bytes")
            return False
        if backend.unflushed > limit // (16 * backend.writers):
            # Now others know of it, and this process looks at what they wrote.
            flush(backend)
            backend.unflushed, backend.used = 0, None
        if backend.used is None or backend.used + byte_count > limit - limit // 8:
            try:
                _make_room(backend, byte_count)
            except Error as error:
                logger.warning(f"[CACHE] not stored, and no room was made: {error}")
                return False
        backend.unflushed += byte_count
    failed = put()
    if failed == "no_space":
        # The store has a limit of its own, and this run has filled it: what is older of ours makes room. On a full disk even that may fail.
        try:
            backend.native.evict(backend.native.stored_bytes() // 2)
            failed = put()
        except Error as error:
            logger.debug(f"[CACHE] no room was made: {error}")
    if failed is None and backend.used is not None:
        backend.used += byte_count
    if failed is not None:
        logger.warning(f"[CACHE] not stored: {failed}")
    return failed is None


def _load_first_layer(model_name: str, prompt: str, layer: int) -> Any:
    """Stands in for the backend's own load_layer until that is prepared for the settings as they are."""
    global load_layer
    if is_off():
        return None
    with _lock:
        native = current().with_torch()
        native.prefer(wanted_dtype)
        load_layer = native.load_layer
    return native.load_layer(model_name, prompt, layer)


def _prepare_again() -> None:
    global load_layer
    load_layer = _load_first_layer


load_layer: Callable[[str, str, int], Any] = _load_first_layer
