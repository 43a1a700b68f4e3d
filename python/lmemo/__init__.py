"""lmemo: never compute twice what a language-model workflow already computed.

    import lmemo

    with lmemo.Store() as store:
        key = lmemo.Key.of("tokens", section=text, tokenizer="gpt2@a1b2")
        hit = store.find(key)
        if hit is None:
            store.put(key, compute(text))
        else:
            numpy.frombuffer(hit, dtype=numpy.int32)  # A view of the file, not a copy.

Warnings about the store itself (a full disk, a damaged entry) go to the logger "lmemo", each of them once.
"""

import atexit as _atexit

from lmemo import _core
from lmemo._core import (
    Damage,
    Entry,
    Explanation,
    FieldDifference,
    Hit,
    InspectedBlock,
    InspectedFile,
    InspectedRecord,
    Key,
    KindCounters,
    KindStats,
    LongValue,
    MemoryStore,
    Progress,
    RemovalReport,
    RepairReport,
    Store,
    StoreBase,
    StoreStats,
    SyncStats,
    VerifyReport,
    inspect_file,
)
from lmemo._core import version as __version__
from lmemo._errors import Busy, Corruption, Error, Incompatible, InvalidArgument, IoError, NoSpace
from lmemo._types import FieldValue
from lmemo.chunk_set import ChunkRow, ChunkSet, RowBatch
from lmemo.sections import Rows, Run, SectionCache
from lmemo.tokenizer import Padding, TokenBatch, Tokenizer, Truncation

__all__ = [
    "Busy",
    "ChunkRow",
    "ChunkSet",
    "Corruption",
    "Damage",
    "Entry",
    "Error",
    "Explanation",
    "FieldDifference",
    "FieldValue",
    "Hit",
    "Incompatible",
    "InspectedBlock",
    "InspectedFile",
    "InspectedRecord",
    "InvalidArgument",
    "IoError",
    "Key",
    "KindCounters",
    "KindStats",
    "LongValue",
    "MemoryStore",
    "NoSpace",
    "Padding",
    "Progress",
    "RemovalReport",
    "RepairReport",
    "RowBatch",
    "Rows",
    "Run",
    "SectionCache",
    "Store",
    "StoreBase",
    "StoreStats",
    "SyncStats",
    "TokenBatch",
    "Tokenizer",
    "Truncation",
    "VerifyReport",
    "__version__",
    "inspect_file",
]

# People meet these as lmemo.Key, lmemo.Error, …; so do pickles, which must not know where a class is defined.
for _name in __all__:
    _public = globals()[_name]
    if isinstance(_public, type):
        _public.__module__ = "lmemo"

# What was put shortly before the end is published even if nobody closed the store.
_atexit.register(_core.flush_all)
