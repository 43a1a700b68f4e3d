"""The compiled part of lmemo."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
import datetime
import os
import pathlib
import typing
from typing import Any, ClassVar, Literal, TypeVar

from lmemo._types import BytesLike, FieldInput, FieldValue, Texts
import numpy
from numpy.typing import NDArray
from typing_extensions import Buffer, Self


T = TypeVar("T")
_MISS: Any
_flights: ContextVar[tuple[Flight, ...]]

version: str = '0.1.0'

class LongValue:
    """
    What stands for a text or blob of more than 256 bytes in the fields of a key: its length and SHA-256. Given to Key.of it makes the same key as the text or blob itself.
    """

    def __init__(self, is_text: bool, byte_count: int, sha256: bytes) -> None: ...

    @property
    def is_text(self) -> bool:
        """True for a str, False for bytes."""

    @property
    def byte_count(self) -> int:
        """Length in bytes; of a text, in UTF-8."""

    @property
    def sha256(self) -> bytes:
        """SHA-256 of the bytes."""

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __reduce__(self) -> tuple[type[LongValue], tuple[bool, int, bytes]]: ...

    def __repr__(self) -> str: ...

class Key:
    """
    The identity of an entry: a kind and named, typed fields.

        Key.of("tokens", section=text, tokenizer="gpt2@a1b2")

    Two keys are equal exactly if kind, names, types and values are equal: 1, 1.0, True and "1" are four different values. The digest is the same in every process, on every machine and in every version of Python.
    """

    def __init__(self, encoding: Buffer, /) -> None:
        """
        Reads an encoding back, as Key.from_encoding does. To make a key, use Key.of.
        """

    @staticmethod
    def of(kind: str, fields: Mapping[str, FieldInput] | None = None, /, **named: FieldInput) -> Key:
        """
        Makes a key. Fields are given by name, or in a mapping if a name is no identifier; their order does not matter.

        A value is None, bool, int (64 bits), float, str or bytes, or a numpy scalar of such a type. Every str can be part of a key, lone surrogates included (they are encoded as by "surrogatepass"). Of a text or blob of more than 256 bytes length and SHA-256 are kept; it still counts in full.
        """

    @staticmethod
    def from_encoding(encoding: Buffer, /) -> Key:
        """
        Reads back what `encoding` gave. Raises lmemo.Corruption if the bytes are nothing of the kind.
        """

    @property
    def digest(self) -> bytes:
        """The 32 bytes under which the entry is found."""

    @property
    def hex(self) -> str:
        """The digest as 64 hex digits."""

    @property
    def kind(self) -> str:
        """The namespace of the entry."""

    @property
    def fields(self) -> dict[str, FieldValue]:
        """
        The fields by name, in order of their names. Long texts and blobs come back as LongValue.
        """

    @property
    def encoding(self) -> bytes:
        """
        The canonical encoding: what is hashed, and what is stored beside the entry.
        """

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __reduce__(self) -> tuple[type[Key], tuple[bytes]]: ...

    def __repr__(self) -> str: ...

class Hit:
    """
    A found entry: a read-only view of its bytes, without a copy.

        numpy.frombuffer(hit, dtype=numpy.int32)    memoryview(hit)    bytes(hit)

    It stays valid while it, or an array made from it, lives: also when the store is closed, the entry is evicted or the directory is deleted.
    """

    def __buffer__(self, flags: int, /) -> memoryview: ...

    def __len__(self) -> int: ...

    def __bool__(self) -> bool:
        """Always True: also an empty value was found."""

    def __eq__(self, other: object, /) -> bool:
        """True for every bytes-like object with the same bytes."""

    @property
    def written(self) -> datetime.datetime:
        """When it was put (UTC)."""

    @property
    def written_ns(self) -> int:
        """
        When it was put: nanoseconds since 1970, never twice the same within a process.
        """

    def __repr__(self) -> str: ...

    __hash__: ClassVar[None]  # type: ignore[assignment]

class KindStats:
    """What is stored under one kind."""

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values that json.dumps takes."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    __hash__: ClassVar[None]  # type: ignore[assignment]

    @property
    def entries(self) -> int:
        """Entries that can be found."""

    @property
    def value_bytes(self) -> int:
        """Bytes of their values."""

    @property
    def stored_bytes(self) -> int:
        """With keys, fields and checksums."""

    @property
    def max_bytes(self) -> int:
        """The limit of this kind; 0: only the limit of the whole store."""

class KindCounters:
    """What this object did with one kind."""

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values that json.dumps takes."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    __hash__: ClassVar[None]  # type: ignore[assignment]

    @property
    def hits(self) -> int:
        """Finds that found something."""

    @property
    def puts(self) -> int:
        """Entries put."""

    @property
    def put_bytes(self) -> int:
        """Bytes of their values."""

class StoreStats:
    """What a store holds, and what this object did since it was opened."""

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values that json.dumps takes."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    __hash__: ClassVar[None]  # type: ignore[assignment]

    @property
    def entries(self) -> int:
        """Entries that can be found."""

    @property
    def live_bytes(self) -> int:
        """About what compact() would leave."""

    @property
    def disk_bytes(self) -> int:
        """What the directory takes."""

    @property
    def max_bytes(self) -> int:
        """The limit; 0: none."""

    @property
    def segments(self) -> int:
        """Files that hold entries."""

    @property
    def oldest(self) -> datetime.datetime | None:
        """When the oldest entry was put (UTC)."""

    @property
    def newest(self) -> datetime.datetime | None:
        """When the newest entry was put (UTC)."""

    @property
    def kinds(self) -> dict[str, KindStats]:
        """What is stored, by kind."""

    @property
    def hits(self) -> int:
        """Finds that found something."""

    @property
    def misses(self) -> int:
        """Finds that did not."""

    @property
    def puts(self) -> int:
        """Entries put."""

    @property
    def failed_puts(self) -> int:
        """Lost chances: full disk, limit, permissions."""

    @property
    def erased(self) -> int:
        """Entries erased by name."""

    @property
    def evicted(self) -> int:
        """Entries that went to make room."""

    @property
    def evicted_bytes(self) -> int:
        """Their size."""

    @property
    def damaged_records(self) -> int:
        """Found damaged on the way; each was a miss."""

    @property
    def published_segments(self) -> int:
        """Files made visible to everyone."""

    @property
    def salvaged_records(self) -> int:
        """Taken over from writers that died."""

    @property
    def counters(self) -> dict[str, KindCounters]:
        """What this object did, by kind."""

class Entry:
    """One entry as scan() shows it; its value is not read."""

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values that json.dumps takes."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    __hash__: ClassVar[None]  # type: ignore[assignment]

    @property
    def digest(self) -> bytes:
        """The digest of its key."""

    @property
    def kind(self) -> str:
        """The namespace it is in."""

    @property
    def key(self) -> Key | None:
        """Its key with all fields; None if they are damaged."""

    @property
    def value_bytes(self) -> int:
        """Length of its value."""

    @property
    def stored_bytes(self) -> int:
        """With key, fields and checksum."""

    @property
    def written(self) -> datetime.datetime:
        """When it was put (UTC)."""

    @property
    def accessed(self) -> datetime.datetime | None:
        """When it was last found, to about an hour (UTC)."""

class FieldDifference:
    """A field in which a request and an entry differ."""

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values that json.dumps takes."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    __hash__: ClassVar[None]  # type: ignore[assignment]

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def in_request(self) -> bool:
        """The request has this field."""

    @property
    def asked(self) -> FieldValue:
        """Its value in the request."""

    @property
    def in_entry(self) -> bool:
        """The entry has this field."""

    @property
    def stored(self) -> FieldValue:
        """Its value in the entry."""

class Explanation:
    """Why a request missed: the nearest entry, and where it differs."""

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values that json.dumps takes."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    __hash__: ClassVar[None]  # type: ignore[assignment]

    @property
    def is_hit(self) -> bool:
        """The entry is there."""

    @property
    def candidates(self) -> int:
        """Entries of the same kind."""

    @property
    def nearest(self) -> Key | None:
        """The key that shares the most fields with the request."""

    @property
    def nearest_written(self) -> datetime.datetime | None:
        """When that entry was put (UTC)."""

    @property
    def differing(self) -> list[FieldDifference]:
        """The fields it does not share."""

    def __str__(self) -> str:
        """One line for people."""

class Progress:
    """How far long work is: what a progress callback gets."""

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values that json.dumps takes."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    __hash__: ClassVar[None]  # type: ignore[assignment]

    @property
    def phase(self) -> str:
        """"verify", "compact", …"""

    @property
    def done(self) -> int:
        """Units done."""

    @property
    def total(self) -> int:
        """Units to do; 0: not known."""

    @property
    def unit(self) -> str:
        """"bytes", "entries", …"""

class Damage:
    """One damaged place."""

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values that json.dumps takes."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    __hash__: ClassVar[None]  # type: ignore[assignment]

    @property
    def file(self) -> str:
        """The file, relative to the store."""

    @property
    def offset(self) -> int:
        """The byte in it."""

    @property
    def what(self) -> str:
        """What was found, and what was expected."""

    @property
    def digest(self) -> bytes | None:
        """The key of the entry that is lost, if it is known."""

class VerifyReport:
    """What verify() found."""

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values that json.dumps takes."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    __hash__: ClassVar[None]  # type: ignore[assignment]

    @property
    def segments(self) -> int:
        """Segments read."""

    @property
    def records(self) -> int:
        """Records read."""

    @property
    def bytes(self) -> int:
        """Bytes read."""

    @property
    def damage(self) -> list[Damage]:
        """What is damaged."""

    @property
    def unreadable(self) -> list[str]:
        """Files that could not be opened, and why: perhaps sound; left alone."""

    @property
    def leftovers(self) -> list[str]:
        """Files of writers that died; repair() takes them over or removes them."""

    @property
    def foreign(self) -> list[str]:
        """Files that lmemo did not write; left alone."""

    @property
    def is_clean(self) -> bool:
        """No damage, nothing unreadable and no leftovers."""

class RepairReport:
    """What repair() did."""

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values that json.dumps takes."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    __hash__: ClassVar[None]  # type: ignore[assignment]

    @property
    def found(self) -> VerifyReport:
        """What was wrong before."""

    @property
    def kept_records(self) -> int:
        """Good records of the files that were rewritten."""

    @property
    def lost_records(self) -> int:
        """Damaged ones; they will be computed again."""

    @property
    def removed_files(self) -> int:
        """Files removed."""

class RemovalReport:
    """What a call removed, and what that gave back to the disk."""

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values that json.dumps takes."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    __hash__: ClassVar[None]  # type: ignore[assignment]

    @property
    def entries(self) -> int:
        """Entries removed."""

    @property
    def stored_bytes(self) -> int:
        """Their size."""

    @property
    def disk_bytes_before(self) -> int:
        """What the directory took before."""

    @property
    def disk_bytes_after(self) -> int:
        """What it takes now."""

class InspectedRecord:
    """One sound record of a file."""

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values that json.dumps takes."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    __hash__: ClassVar[None]  # type: ignore[assignment]

    @property
    def offset(self) -> int:
        """Where it starts."""

    @property
    def stored_bytes(self) -> int:
        """Its whole length."""

    @property
    def value_offset(self) -> int:
        """Where its value starts in the file."""

    @property
    def value_bytes(self) -> int:
        """Length of its value."""

    @property
    def written(self) -> datetime.datetime | None:
        """When it was put (UTC)."""

    @property
    def is_erasure(self) -> bool:
        """It says that an entry is gone."""

    @property
    def digest(self) -> bytes:
        """The digest of its key."""

    @property
    def key(self) -> Key | None:
        """Its key; None for erasures and unreadable fields."""

class InspectedBlock:
    """One part of a file."""

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values that json.dumps takes."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    __hash__: ClassVar[None]  # type: ignore[assignment]

    @property
    def name(self) -> str:
        """"header", "records", "index", …"""

    @property
    def offset(self) -> int:
        """Where it starts."""

    @property
    def byte_count(self) -> int:
        """Its length."""

    @property
    def is_sound(self) -> bool:
        """It is what was written."""

    @property
    def note(self) -> str:
        """What is wrong with it, or empty."""

class InspectedFile:
    """What a file holds."""

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values that json.dumps takes."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    __hash__: ClassVar[None]  # type: ignore[assignment]

    @property
    def file_bytes(self) -> int:
        """Its length."""

    @property
    def version(self) -> int:
        """The version of the format."""

    @property
    def nonce(self) -> int:
        """The random number of its writer."""

    @property
    def is_sealed(self) -> bool:
        """It was finished: footer and index are sound."""

    @property
    def blocks(self) -> list[InspectedBlock]:
        """Its parts, in order."""

    @property
    def records(self) -> list[InspectedRecord]:
        """Its sound records, in order."""

    @property
    def problems(self) -> list[str]:
        """What is wrong with it."""

def inspect_file(path: str | os.PathLike[str]) -> InspectedFile:
    """
    Looks into a file that lmemo wrote, damaged or not, without opening a store. Raises lmemo.Error only if it cannot be read or is nothing that lmemo writes.
    """

def default_store_directory() -> pathlib.Path:
    """Where the store is if nobody says where."""

class StoreBase:
    """
    What Store and MemoryStore have in common: annotate with this whatever takes either.

    All methods may be called from any thread.
    """

    def find(self, key: Key, /) -> Hit | None:
        """
        The entry, or None. Its checksum has been checked; a damaged entry is a miss, counted and logged.
        """

    def find_many(self, keys: Iterable[Key]) -> list[Hit | None]:
        """
        What find() gives for each key, in their order; other threads run meanwhile.
        """

    def contains(self, key: Key, /) -> bool:
        """True if find() would look at an entry; its checksum is not checked."""

    def __contains__(self, key: Key, /) -> bool: ...

    def put(self, key: Key, value: BytesLike, /) -> bool:
        """
        Keeps the bytes under the key; a later put of the same key wins. False if they could not be kept (full disk, no permission, read-only store): the cause is logged once, and your work goes on.
        """

    def put_many(self, pairs: Mapping[Key, BytesLike] | Iterable[tuple[Key, BytesLike]]) -> bool:
        """Puts every pair, with fewer steps. True if all of them were kept."""

    def flush(self) -> None:
        """
        When this returns, everything put or erased before survives power loss and is visible to everyone. Raises lmemo.Error if that cannot be promised.
        """

    def erase(self, key: Key, /) -> bool:
        """Removes the entry. True if it was there."""

    def erase_matching(self, kind: str | None = None, fields: Mapping[str, FieldInput] | None = None, *, progress: Callable[[Progress], object] | None = None, **named: FieldInput) -> RemovalReport:
        """
        Removes every entry of this kind that has all of these fields. A field called kind, fields or progress goes into `fields`.
        """

    def scan(self, kind: str | None = None, fields: Mapping[str, FieldInput] | None = None, **named: FieldInput) -> list[Entry]:
        """
        The entries of this kind (None: all) that have all of these fields, in no particular order. A field called kind or fields goes into `fields`.
        """

    def explain(self, key: Key, /) -> Explanation:
        """
        Why find(key) misses: the nearest entry, and the fields in which it differs.
        """

    def stats(self) -> StoreStats:
        """What is stored, and what this object did since it was opened."""

    def verify(self, *, progress: Callable[[Progress], object] | None = None) -> VerifyReport:
        """Reads and checks everything, and changes nothing."""

    def repair(self, *, progress: Callable[[Progress], object] | None = None) -> RepairReport:
        """Takes damaged entries and leftovers out, and keeps everything else."""

    def prune(self, older_than: float | datetime.timedelta | str, kind: str | None = None, *, progress: Callable[[Progress], object] | None = None) -> RemovalReport:
        """
        Drops what was neither put nor found for so long (seconds, a timedelta, or "30d"), and gives the space back.
        """

    def evict(self, target_bytes: int | str, *, progress: Callable[[Progress], object] | None = None) -> RemovalReport:
        """
        Makes room: the least recently used entries go, until the store takes at most this much.
        """

    def compact(self, *, progress: Callable[[Progress], object] | None = None) -> RemovalReport:
        """
        Rewrites what is alive and gives the rest back to the disk, while others read and write.
        """

    def clear(self, kind: str | None = None) -> RemovalReport:
        """Removes every entry, or every entry of one kind."""

    def close(self) -> None:
        """
        Publishes what was put, and lets go of the files. Hits stay valid. A failure to publish is logged, not raised; call flush() first if you must know.
        """

    @property
    def is_closed(self) -> bool:
        """close() was called."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...

class Store(StoreBase):
    """
    What was computed once, in a directory that several processes may use at once.

        with lmemo.Store() as store:
            hit = store.find(key)
            if hit is None:
                store.put(key, compute())

    Without a path the store is LMEMO_STORE, else lmemo in the user's cache directory.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, max_bytes: int | str = '10GiB', max_bytes_by_kind: Mapping[str, int | str] | None = None, read_only: bool = False, create: bool = True, check: Literal['first_find', 'every_find'] = 'first_find', segment_bytes: int | str = '64MiB', publish_seconds: float = 1.0, refresh_seconds: float = 0.05) -> None:
        """
        max_bytes, max_bytes_by_kind: least recently used entries go when the store grows past it; 0: no limit.
        read_only: nothing is written; put() returns False.
        create: make the directory if it is not there.
        check: "first_find" checks the checksum of an entry at its first find by this object and again after its file changed, "every_find" at every find.
        segment_bytes, publish_seconds: what was put becomes visible to other processes in batches that are at most this large and this old at the next put.
        refresh_seconds: how old a miss may be before the directory is looked at again.
        """

    @property
    def path(self) -> pathlib.Path:
        """The directory."""

    @property
    def read_only(self) -> bool:
        """Nothing is written."""

    def __repr__(self) -> str: ...

class MemoryStore(StoreBase):
    """
    The same without a disk. Past max_bytes (0: no limit) the least recently used entries go.
    """

    def __init__(self, max_bytes: int | str = 0) -> None: ...

    def __repr__(self) -> str: ...

def flush_all() -> None:
    """Publishes what was put into any open store."""

class ModelSettings:
    """What stands beside the tokenizer.json in a model's directory."""

    @staticmethod
    def read(directory: str | os.PathLike[str]) -> ModelSettings: ...

    @property
    def special_tokens(self) -> dict[str, str]:
        """By their role: {'eos_token': '</s>'}."""

    @property
    def chat_templates(self) -> dict[str, str]:
        """By name; the usual one is 'default'."""

    def identity_with(self, fingerprint: str) -> str:
        """The fingerprint of a tokenizer together with these settings."""

class NativeTokenizer:
    """The compiled engine behind lmemo.Tokenizer."""

    @staticmethod
    def from_json(json: str | bytes) -> NativeTokenizer:
        """Builds the tokenizer that the text of a tokenizer.json describes."""

    @staticmethod
    def load(path: str | os.PathLike[str]) -> NativeTokenizer:
        """
        Builds it from a file, which is mapped and not copied, or from a model's directory.
        """

    @staticmethod
    def load_tiktoken(path: str | os.PathLike[str], pattern: str, special_tokens: dict[str, int]) -> NativeTokenizer:
        """Builds it from a tiktoken rank file."""

    def encode(self, text: str | bytes, add_special_tokens: bool, truncation: tuple[int | None, int, bool] | None = None, padding: tuple[int | None, int, int, bool] | None = None) -> NDArray[numpy.uint32]: ...

    def encode_batch(self, texts: Texts, add_special_tokens: bool, threads: int, truncation: tuple[int | None, int, bool] | None = None, padding: tuple[int | None, int, int, bool] | None = None) -> tuple[NDArray[numpy.uint32], NDArray[numpy.uint64]]:
        """
        All ids in one array, and where each text starts in it. `threads` 0 is one per core.
        """

    def decode(self, ids: Iterable[int], skip_special_tokens: bool) -> str: ...

    def token_to_id(self, token: str) -> int | None: ...

    def id_to_token(self, id: int) -> str | None: ...

    def save_pieces(self, path: str | os.PathLike[str]) -> None: ...

    def load_pieces(self, path: str | os.PathLike[str]) -> int: ...

    @property
    def vocab_size(self) -> int: ...

    @property
    def fingerprint(self) -> str: ...

    @property
    def engine(self) -> str: ...

class ForwardCache:
    """
    Values by any hashable key; the least recently used go first. Safe under threads; a hit takes no global lock.

        cache = ForwardCache(maxsize=256, max_bytes="2GiB")
        value = cache.get(key)
        if value is _MISS:
            cache.put(key, compute())
    """

    def get(self, key: object) -> Any:
        """The value, which becomes the most recent, or the sentinel `_MISS`: a cached None is a hit."""

    def put(self, key: object, value: object) -> None:
        """Keeps the value as the most recent, and drops the least recent ones beyond the limits."""

    def __init__(self, maxsize: int = 256, *, max_bytes: int | str | None = None, size_of: Callable[[Any], int] | None = None) -> None:
        """
        maxsize: entries.
        max_bytes: what the values may weigh together; None: no limit. A value that alone weighs more is not kept.
        size_of: weighs a value; the default is lmemo.forward.size_of.
        """

    def __len__(self) -> int: ...

    def clear(self) -> None:
        """Drops every entry."""

    @property
    def maxsize(self) -> int:
        """The limit in entries."""

    @property
    def max_bytes(self) -> int | None:
        """The limit in bytes, or None."""

    @property
    def byte_count(self) -> int:
        """What the values weigh now; 0 if they are not weighed."""

    @property
    def evictions(self) -> int:
        """Entries that had to make room."""

class BackendStats:
    """
    Counters of everything that went through one BackendInstrumentation, exact under threads.
    """

    def __init__(self, cache_hits: int = 0, cache_misses: int = 0, forward_passes: int = 0, scoring_wall_s: float = 0.0, batches_sent: int = 0, batched_prompts: int = 0, max_batch_size: int = 0) -> None: ...

    @property
    def scoring_wall_s(self) -> float:
        """Seconds spent inside scoring calls: forward passes, hits and waits."""

    @scoring_wall_s.setter
    def scoring_wall_s(self, arg: float, /) -> None: ...

    @property
    def max_batch_size(self) -> int:
        """The largest batch sent."""

    @max_batch_size.setter
    def max_batch_size(self, arg: int, /) -> None: ...

    @property
    def total_lookups(self) -> int:
        """cache_hits + cache_misses"""

    @property
    def hit_rate(self) -> float:
        """cache_hits / total_lookups; 0.0 before the first lookup."""

    @property
    def avg_batch_size(self) -> float:
        """batched_prompts / batches_sent; 0.0 before the first batch."""

    def to_dict(self, everything: bool = False) -> dict[str, int | float]:
        """
        The seven counters, hit_rate and avg_batch_size; with everything=True the further counters too.
        """

    def __getstate__(self) -> tuple[Any, ...]: ...

    def __setstate__(self, state: tuple[Any, ...], /) -> None: ...

    def __eq__(self, other: object, /) -> bool: ...

    def __repr__(self) -> str: ...

    @property
    def cache_hits(self) -> int:
        """Lookups that needed no forward pass."""

    @cache_hits.setter
    def cache_hits(self, arg: int, /) -> None: ...

    @property
    def cache_misses(self) -> int:
        """Lookups that did, and got their result."""

    @cache_misses.setter
    def cache_misses(self, arg: int, /) -> None: ...

    @property
    def forward_passes(self) -> int:
        """Prompts that were computed."""

    @forward_passes.setter
    def forward_passes(self, arg: int, /) -> None: ...

    @property
    def batches_sent(self) -> int:
        """Calls of compute_misses that returned."""

    @batches_sent.setter
    def batches_sent(self, arg: int, /) -> None: ...

    @property
    def batched_prompts(self) -> int:
        """Prompts in those calls."""

    @batched_prompts.setter
    def batched_prompts(self, arg: int, /) -> None: ...

    @property
    def failures(self) -> int:
        """Prompts whose computation raised; they count as no lookup."""

    @failures.setter
    def failures(self, arg: int, /) -> None: ...

    @property
    def shared(self) -> int:
        """
        Hits that waited for the forward pass of another thread, task or place in the batch.
        """

    @shared.setter
    def shared(self, arg: int, /) -> None: ...

    @property
    def store_hits(self) -> int:
        """Hits that came from the store."""

    @store_hits.setter
    def store_hits(self, arg: int, /) -> None: ...

    @property
    def stored(self) -> int:
        """Results that were put into the store."""

    @stored.setter
    def stored(self, arg: int, /) -> None: ...

    @property
    def memory_only(self) -> int:
        """Results that are kept in memory alone: no codec, or the store said no."""

    @memory_only.setter
    def memory_only(self, arg: int, /) -> None: ...

    @property
    def unreadable(self) -> int:
        """Entries of the store that could not be read; each was a miss."""

    @unreadable.setter
    def unreadable(self, arg: int, /) -> None: ...

    __hash__: ClassVar[None]  # type: ignore[assignment]

class TraceWriter:
    """
    One JSON object a line for every lookup: ts, probe, view_id, prompt_hash, top_k, op, wall_ms, hit.

    None for the path: nothing is done. Else the parents are made and lines are appended, by a background thread, whole lines in batches, at least every second, at close() and at exit.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None: ...

    def write(self, event: Any) -> None:
        """
        Adds a line from an object with the members as attributes. After close() it is ignored.
        """

    def flush(self) -> None:
        """Returns when every line written before is in the file."""

    def close(self) -> None:
        """Flushes and lets go of the file. A second call does nothing."""

    @property
    def path(self) -> pathlib.Path | None:
        """The file, or None."""

    @property
    def lines(self) -> int:
        """Lines in the file so far that came from this writer."""

    @property
    def lost_lines(self) -> int:
        """
        Lines that could not be written (a full disk); the cause is logged once.
        """

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...

def close_all_traces() -> None:
    """Writes what is queued in any open TraceWriter, and closes it."""

class Flight:
    """One computation under way."""

def encode_value(value: Any, float16: bool = False) -> bytes | None:
    """
    The bytes that a store keeps of a result; None if it can only be kept in memory.
    """

def decode_value(data: Buffer) -> Any:
    """
    The result that encode_value() was given. Raises lmemo.Corruption for bytes that hold none, lmemo.Incompatible for a dataclass that is not registered, or an array or tensor whose library is not installed.
    """

class Instrumentation:
    """The compiled part of lmemo.forward.BackendInstrumentation."""

    def cached(self, op: str, view_id: str, prompt: Any, top_k: Any, compute: Callable[[], T]) -> T:
        """The result of this call if it is known, else compute(), which is kept."""

    def cached_batch(self, op: str, view_id: str, prompts: Sequence[Any], top_k: Any, compute_misses: Callable[[list[int]], Iterable[T]]) -> list[T]:
        """The results of all prompts, in their order. compute_misses(indices) is called once, with the indices of what is not known."""

    def _begin(self, op: str, view_id: str, prompt: Any, top_k: Any, batch: object) -> tuple[int, Any, int]: ...
    def _finish(self, flight: Flight, value: Any, wall_seconds: float) -> Any: ...
    def _fail(self, flight: Flight, error: BaseException, wall_seconds: float) -> None: ...
    def _call_when_done(self, flight: Flight, callback: Callable[[], object]) -> None: ...
    def _outcome(self, flight: Flight, wait_number: int | None, wall_seconds: float) -> tuple[bool, Any]: ...
    def _leave(self, wait_number: int) -> None: ...
    def _note_batch(self, prompts: int) -> None: ...

    def __init__(self, *, cache_maxsize: int = 256, trace_path: str | os.PathLike[str] | None = None, cache_max_bytes: int | str | None = None, size_of: Callable[[Any], int] | None = None, store: StoreBase | None = None, float16: bool = False) -> None:
        """
        cache_maxsize, cache_max_bytes, size_of: the limits of the cache in memory, as for ForwardCache.
        trace_path: a line for every lookup is appended there.
        store: results survive the process and are shared with others that use the same store.
        float16: floating-point arrays are stored with half precision. This is part of their identity, and a result is rounded when it is computed, so that it is the same whoever asks.
        """

    @property
    def cache(self) -> ForwardCache:
        """What is kept in memory; keys are (op, view_id, prompt, top_k)."""

    @property
    def trace(self) -> TraceWriter:
        """
        Where lookups are written down. May be replaced at any time; the old one stays open if somebody else holds it.
        """

    @trace.setter
    def trace(self, trace: TraceWriter, /) -> None: ...

    @property
    def stats(self) -> BackendStats:
        """What happened so far."""

    @property
    def store(self) -> StoreBase | None:
        """Where results survive, or None."""

    @property
    def current_probe(self) -> str | None:
        """The label of trace lines."""

    def set_current_probe(self, name: str | None) -> None:
        """
        Labels the trace lines from here on. What was traced under another label is in the file when this returns.
        """

    def close(self) -> None:
        """
        Closes the trace and publishes what was put into the store. The cache goes on working.
        """

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...

    def put(self, op: str, view_id: str, prompt: Any, top_k: Any, value: Any) -> None:
        """Keeps a result that was computed elsewhere. Counts no lookup."""

def checked_results(given: object | None, count: int, op: object | None, view_id: object | None) -> object: ...

class ActivationKeys:
    """The keys of one model's activations."""

    def __init__(self, fields: Mapping[str, FieldValue]) -> None: ...

    def key(self, prompt: str, part: str, layer: int | None = None, pooling: str = '', stored: str | None = None) -> Key:
        """The key of one entry, for Store.explain and the like."""

    @property
    def encoding(self) -> bytes:
        """The model's fields as they stand in a key."""

class FoundTensors:
    """
    Tensors that were found, where they lie. They stay valid while this object lives.
    """

    def __len__(self) -> int: ...

    def dtype(self, number: int = 0) -> str:
        """The stored dtype, as torch calls it."""

    def shape(self, number: int = 0) -> tuple[int, ...]: ...

    def is_compressed(self, number: int = 0) -> bool: ...

    def hit(self, number: int = 0) -> Hit:
        """The record that holds it: a read-only buffer."""

    def offset(self, number: int = 0) -> int:
        """Where its elements begin in the record."""

    def copy_to(self, number: int, address: int, dtype: str, row_bytes: int = 0, row_stride: int = 0) -> None: ...

    def copy_layers_to(self, address: int, dtype: str, row_stride: int) -> None: ...

class WantedLayers:
    """What NativeActivations.load_all() loads of every prompt."""

    def __init__(self, part: str, pooling: str, layers: Sequence[int], order: Sequence[str], dtype: str | None) -> None:
        """
        `order`: the stored dtypes that do; the first that has all layers is taken. `dtype` is that of the result; None: the one in which all are stored.
        """

class NativeActivations:
    """Tensors in and out of a store."""

    def load_layer(self, model_name: str, prompt: str, layer: int, /) -> Any: ...

    def __init__(self, store: StoreBase) -> None: ...

    def use_torch(self, empty: Callable[..., Any], from_dlpack: Callable[[Any], Any], types: dict[str, Any], plain_keys: dict[str, ActivationKeys], make_keys: Callable[[str], ActivationKeys]) -> None: ...

    def prefer(self, dtype: str | None) -> None: ...

    def put_rows(self, keys: ActivationKeys, prompt: object, part: str, pooling: str, layers: Sequence[int], columns: Sequence[int], stored: str, compress: bool, source: str, address: int, rows: int, dim: int, row_stride: int, mask: tuple[str, int] | None = None) -> str | None: ...

    def put_tensors(self, keys: ActivationKeys, prompt: object, part: str, stored: str | None, compress: bool, tensors: Sequence[tuple[str, Sequence[int], int]]) -> str | None: ...

    def find_layers(self, keys: ActivationKeys, prompt: object, part: str, pooling: str, layers: Sequence[int], order: Sequence[str]) -> FoundTensors | None: ...

    def find_record(self, keys: ActivationKeys, prompt: object, part: str, order: Sequence[str]) -> FoundTensors | None: ...

    def find_key(self, key: Key) -> FoundTensors | None: ...

    def missing_layers(self, keys: ActivationKeys, prompt: object, part: str, pooling: str, layers: Sequence[int], order: Sequence[str]) -> list[int]: ...

    def load_layer_of(self, keys: ActivationKeys, prompt: str, layer: int) -> Any: ...

    def load_all(self, keys: ActivationKeys, prompts: list[str], wanted: WantedLayers) -> Any: ...

    def load_last_rows(self, keys: ActivationKeys, prompts: list[str], layer: int, order: Sequence[str]) -> Any: ...

    def side_by_side(self, found: FoundTensors) -> Any: ...

    def models(self) -> list[dict[str, Any]]: ...

    def discover(self, keys: ActivationKeys, prompt: str) -> Any: ...

    def refresh(self) -> None: ...

    def stored_bytes(self) -> int: ...

    def evict(self, target_bytes: int) -> tuple[int, int]: ...

class ClaimFile:
    """
    Who works on what, between processes; a dead owner never blocks anybody.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None: ...

    def try_claim(self, number: int) -> bool: ...

    def release(self, number: int) -> None: ...

def kept_positions(dtype: str, address: int, count: int) -> tuple[int, int]:
    """From the first to behind the last element of a mask that counts."""

def expect_large(address: int, byte_count: int) -> None:
    """Asks for pages of 2 MB for new memory that is about to be written to."""

def convert_floats(from_dtype: str, source: int, to_dtype: str, target: int, count: int) -> None:
    """
    Converts so many floats between float32, float16 and bfloat16, from one address to another.
    """

class NativeChunkSet:
    """The compiled part of lmemo.ChunkSet."""

    @staticmethod
    def open(directory: str | os.PathLike[str], allow_gaps: bool = False, tokenizer: str | None = None) -> NativeChunkSet: ...

    @property
    def rows(self) -> int: ...

    @property
    def tokens(self) -> int: ...

    @property
    def blocks(self) -> int: ...

    @property
    def sequence_length(self) -> int: ...

    @property
    def planned_chunks(self) -> int: ...

    @property
    def identity(self) -> str: ...

    @property
    def block_rows(self) -> int: ...

    @property
    def parameters(self) -> dict[str, Any]: ...

    @property
    def chunks(self) -> list[dict[str, Any]]: ...

    @property
    def chunk_rows(self) -> list[int]: ...

    @property
    def gaps(self) -> list[int]: ...

    def identity_of_first(self, chunks: int) -> str: ...

class RowOrder:
    """The order of rows in an epoch; lmemo.torch.ChunkDataset reads by it."""

    @staticmethod
    def make(chunk_rows: Sequence[int], kind: str, seed: int, epoch: int, block_rows: int, window_blocks: int, lanes: int, growths: Sequence[tuple[int, int]], chunk_starts: Sequence[int]) -> RowOrder: ...

    def rows_at(self, first: int, stride: int, count: int) -> list[int]: ...

    @property
    def rows(self) -> int: ...

class RowReader:
    """Rows as the columns of a batch, decoded ahead by threads."""

    def __init__(self, chunk_set: NativeChunkSet, max_bytes: int, threads: int, is_compact: bool = True) -> None: ...

    def read_into(self, rows: Sequence[int], input_ids: Any, labels: Any, position_ids: Any, pad_id: int, masks_boundaries: bool) -> tuple[memoryview, memoryview]:
        """
        Fills the columns. Gives the lengths of all pieces, and where those of each row start.
        """

    def read_places_into(self, order: RowOrder, first: int, stride: int, count: int, input_ids: Any, labels: Any, position_ids: Any, pad_id: int, masks_boundaries: bool) -> tuple[memoryview, memoryview]:
        """The same for places of an order."""

    def expect_places(self, order: RowOrder, first: int, stride: int, count: int) -> None: ...

    def read_new(self, rows: Sequence[int], pad_id: int) -> tuple[memoryview, memoryview, memoryview]: ...

    def expect(self, rows: Sequence[int]) -> None: ...

    def counters(self) -> dict[str, int]: ...

    def pause(self) -> None:
        """Before a fork."""

    def go_on(self) -> None:
        """After it, in the parent."""

    def abandon(self) -> None:
        """After it, in the child."""

def dataset_check(config: str, file: str | os.PathLike[str], rehash: bool) -> list[tuple[str, str, str, str]]:
    """Behind lmemo.dataset.check."""

def dataset_ensure(config: str, file: str | os.PathLike[str], open_store: Callable[[], StoreBase | None], renderer: Any, note: Callable[[str], object] | None, progress: Callable[[Progress], object] | None, rehash: bool, force: bool) -> dict[str, Any]:
    """Behind lmemo.dataset.build."""

def dataset_resolve(directory: str | os.PathLike[str]) -> pathlib.Path:
    """
    The directory of the files that belong together, which the next build leaves alone.
    """

class SyncStats:
    """What a sync of source trees did."""

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values that json.dumps takes."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    __hash__: ClassVar[None]  # type: ignore[assignment]

    @property
    def run_id(self) -> str:
        """26 characters that sort by time."""

    @property
    def total_sections(self) -> int:
        """Rows: files that were not skipped."""

    @property
    def cache_hits(self) -> int:
        """Sections found in the store."""

    @property
    def cache_misses(self) -> int:
        """Sections tokenised."""

    @property
    def hit_rate(self) -> float:
        """Hits of all sections."""

    @property
    def miss_reasons(self) -> dict[str, int]:
        """Misses by reason: new, edited, …"""

    @property
    def total_tokens(self) -> int:
        """Of the rows, after the cut."""

    @property
    def cut_sections(self) -> int:
        """Sections longer than sequence_len."""

    @property
    def total_tokenize_seconds(self) -> float:
        """Added up over threads."""

    @property
    def saved_seconds(self) -> float:
        """What the hits would have taken."""

    @property
    def wall_seconds(self) -> float:
        """Of the whole sync."""

    @property
    def cache_bytes_after(self) -> int:
        """What all sections take in the store."""

    @property
    def files_read(self) -> int:
        """Files that had to be opened."""

    @property
    def source_bytes(self) -> int:
        """Of all files listed."""

    @property
    def skipped_binary(self) -> int:
        """A NUL in the first KiB."""

    @property
    def skipped_not_utf8(self) -> int:
        """Not UTF-8."""

    @property
    def skipped_too_large(self) -> int:
        """Beyond max_bytes_per_file."""

    @property
    def skipped_links(self) -> int:
        """Symbolic links, which are never followed."""

    @property
    def failed(self) -> int:
        """Could not be read or tokenised."""

    @property
    def failed_puts(self) -> int:
        """Tokenised, but the store had no room."""

class SectionRun:
    """The compiled part of lmemo.Run."""

    def __len__(self) -> int: ...

    @property
    def stats(self) -> SyncStats: ...

    @property
    def notices(self) -> list[str]: ...

    def row(self, index: int) -> NDArray[numpy.uint16] | NDArray[numpy.uint32]: ...

    def gather(self, first: int, end: int) -> tuple[NDArray[numpy.int32], NDArray[numpy.int64]]:
        """The ids of rows first to end - 1 in one array, and where each begins."""

    def path(self, index: int) -> pathlib.Path: ...

    def token_count(self, index: int) -> int: ...

    def is_hit(self, index: int) -> bool: ...

    def key(self, index: int) -> Key: ...

    def explain(self, path: str | os.PathLike[str]) -> str: ...

def sync_sections(store: StoreBase, tokenizer: Any, tokenizer_name: str, chat_template: str | None, eos_token: str | None, sources: Sequence[tuple[Any, Any, Any, int, int, Any]], sequence_len: int, keep_end: bool, default_excludes: bool, gitignore: bool, rehash: bool, own_directory: pathlib.Path | None, max_bytes: int, threads: int, notice: Callable[[str], object], progress: Callable[[Progress], object] | None) -> SectionRun: ...

def prune_sections(store: Store, roots: Sequence[Any], older_than: float | datetime.timedelta | str, progress: Callable[[Progress], object] | None) -> RemovalReport: ...

def read_dlm(path: str | os.PathLike[str], home: str | os.PathLike[str]) -> dict[str, Any]:
    """The frontmatter of a .dlm document, as far as sections go."""

def run_command_line(arguments: Iterable[str], package: str | os.PathLike[str], oracle: Callable[[pathlib.Path], tuple[str, list[str], Callable[[list[str]], list[list[int]]]]] | None = None, chat_renderer: Any = None) -> int:
    """
    Runs one command of `lmemo` and returns its exit code. Writes to the standard streams of the process, past sys.stdout and sys.stderr: flush these before.
    """
