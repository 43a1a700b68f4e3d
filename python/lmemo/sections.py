"""The section cache: the tokens of every file of a source tree, computed once.

    cache = lmemo.SectionCache(lmemo.Store(), lmemo.Tokenizer.from_pretrained_dir("models/llama"), sequence_len=2048)
    run = cache.sync("~/src/project", include=["**/*.py"])
    run.stats.hit_rate
    for ids in run.rows: ...            # numpy arrays, views of the store where the vocabulary fits two bytes
    run.to_dataset()                    # input_ids and labels, as TRL's SFTTrainer takes them
"""

from __future__ import annotations

from lmemo import _core
from lmemo._core import StoreBase, SyncStats
from lmemo._errors import InvalidArgument
from lmemo.tokenizer import Tokenizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    import datetime
    import os
    import pathlib
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Literal, TypeAlias

    import numpy
    from numpy.typing import NDArray

    PathLike: TypeAlias = str | os.PathLike[str]
    Row: TypeAlias = NDArray[numpy.uint16] | NDArray[numpy.uint32]


def _warn(text: str) -> None:
    import logging  # Takes longer than lmemo itself.

    logging.getLogger("lmemo").warning(text)


def _first(documents: list[dict[str, Any]], name: str, otherwise: Any) -> Any:
    """What the first document that says something says."""
    return next((document[name] for document in documents if document[name] is not None), otherwise)


def _sources_of(paths: PathLike | Iterable[PathLike]) -> tuple[list[tuple[Any, Any, Any, int, int, Any]], list[dict[str, Any]]]:
    """What paths mean: documents are read, everything else is a source itself."""
    import os

    sources: list[tuple[Any, Any, Any, int, int, Any]] = []
    documents: list[dict[str, Any]] = []
    for path in [paths] if isinstance(paths, (str, os.PathLike)) else paths:
        name = os.path.expanduser(os.fspath(path))
        if name.endswith(".dlm") and os.path.isfile(name):
            document = _core.read_dlm(name, os.path.expanduser("~"))
            for warning in document["warnings"]:
                _warn(warning)
            documents.append(document)
            sources.extend(document["sources"])
        else:
            sources.append((name, [], [], 0, 0, ""))
    return sources, documents


class Rows:
    """The rows of a run as a sequence of arrays of ids, cut to sequence_len.

    Up to 65,536 tokens of vocabulary they are uint16 views of the store, read-only and without a copy; beyond that uint32.
    """

    __slots__ = ("_run",)

    def __init__(self, run: _core.SectionRun) -> None:
        self._run = run

    def __len__(self) -> int:
        return len(self._run)

    def __getitem__(self, index: int) -> Row:
        return self._run.row(index + len(self._run) if index < 0 else index)

    def __iter__(self) -> Iterator[Row]:
        return map(self._run.row, range(len(self._run)))


class Run:
    """What a sync found: counters, rows, and why a section hit or missed."""

    __slots__ = ("_run", "_sequence_len")

    def __init__(self, run: _core.SectionRun, sequence_len: int | None) -> None:
        self._run = run
        self._sequence_len = sequence_len

    @property
    def sequence_len(self) -> int | None:
        """What rows are cut to; None: not at all."""
        return self._sequence_len

    @property
    def stats(self) -> SyncStats:
        """Hits, misses and their reasons, tokens, seconds."""
        return self._run.stats

    @property
    def rows(self) -> Rows:
        """One array of ids for each section, in the order of the sources and then of their paths."""
        return Rows(self._run)

    @property
    def paths(self) -> list[pathlib.Path]:
        """The file of each row."""
        return [self._run.path(index) for index in range(len(self._run))]

    def __len__(self) -> int:
        return len(self._run)

    def key(self, index: int) -> _core.Key:
        """The key under which the section of this row is stored."""
        return self._run.key(index)

    def is_hit(self, index: int) -> bool:
        """Did the store have this row?"""
        return self._run.is_hit(index)

    def explain(self, path: PathLike) -> str:
        """Why the section of this file hit or missed, naming the field that changed."""
        import os

        return self._run.explain(os.path.expanduser(path))

    def arrays(self, first: int = 0, end: int | None = None) -> tuple[NDArray[numpy.int32], NDArray[numpy.int64]]:
        """The ids of many rows in one array, and where each begins in it; one more offset at the end."""
        return self._run.gather(first, len(self._run) if end is None else end)

    def to_dataset(self) -> Any:
        """A `datasets.Dataset` with `input_ids` and `labels`, which TRL's SFTTrainer takes as prepared. Empty rows are left out, as TRL does."""
        try:
            import datasets
            import pyarrow
        except ImportError:
            raise ImportError("to_dataset needs datasets: pip install datasets") from None
        ids, offsets = self.arrays()
        starts = offsets[:-1][offsets[1:] > offsets[:-1]]
        values = pyarrow.array(ids)
        chunks = []
        # Lists have offsets of 32 bits: not too many ids in one.
        bounds = [*starts.tolist(), len(ids)]
        first = 0
        while first < len(starts):
            end = first + 1
            while end < len(starts) and bounds[end + 1] - bounds[first] < 2**31 - 1:
                end += 1
            part = values.slice(bounds[first], bounds[end] - bounds[first])
            lengths = pyarrow.array([bound - bounds[first] for bound in bounds[first : end + 1]], type=pyarrow.int32())
            chunks.append(pyarrow.ListArray.from_arrays(lengths, part))
            first = end
        column = pyarrow.chunked_array(chunks, type=pyarrow.list_(pyarrow.int32()))
        return datasets.Dataset(pyarrow.table({"input_ids": column, "labels": column}))

    def __repr__(self) -> str:
        stats = self.stats
        return f"Run({stats.total_sections} sections, {stats.cache_hits} hits, {stats.cache_misses} misses, {stats.total_tokens} tokens)"


class SectionCache:
    """Keeps the tokens of source trees in a store: an unchanged tree costs a walk, a changed file costs that file.

    The tokenizer is an lmemo.Tokenizer, or one of transformers or tokenizers. `sequence_len`: None cuts nothing, "auto" is what a
    document says, else 2048. `eos_token`: None is the tokenizer's own, False none. Rows are those that TRL's SFTTrainer would have made of the same texts.
    """

    def __init__(
        self,
        store: StoreBase,
        tokenizer: Tokenizer | Any,
        sequence_len: int | Literal["auto"] | None = "auto",
        *,
        eos_token: str | Literal[False] | None = None,
        truncation_mode: Literal["keep_start", "keep_end"] = "keep_start",
        threads: int | None = None,
    ) -> None:
        if sequence_len not in (None, "auto") and (not isinstance(sequence_len, int) or sequence_len < 1):
            raise InvalidArgument(f"sequence_len: found {sequence_len!r}; expected at least 1, None for rows that are not cut, or 'auto'")
        if truncation_mode not in ("keep_start", "keep_end"):
            raise InvalidArgument(f"truncation_mode: found {truncation_mode!r}; expected 'keep_start' or 'keep_end'")
        template: str | None = getattr(tokenizer, "chat_template", None)
        name: str = getattr(tokenizer, "name_or_path", None) or ""
        known_eos: str | None
        if isinstance(tokenizer, Tokenizer):
            known_eos = tokenizer.special_tokens.get("eos_token")
        else:
            known_eos = getattr(tokenizer, "eos_token", None)
            tokenizer = Tokenizer.from_hf(tokenizer)
        self._store = store
        self._engine = tokenizer._engine
        self._name = name or tokenizer._directory or f"{tokenizer.vocab_size} tokens"
        self._sequence_len = sequence_len
        self._eos = None if eos_token is False else known_eos if eos_token is None else eos_token
        self._keep_end = truncation_mode == "keep_end"
        self._threads = threads or 0
        self._template: str | None = None
        if template:
            import hashlib

            text = template if isinstance(template, str) else repr(sorted(template.items()))
            # As the command line counts the templates of a model's directory.
            self._template = hashlib.sha256(f"7:default{len(text.encode())}:{text}".encode()).hexdigest()

    @property
    def eos_token(self) -> str | None:
        """What every section ends with."""
        return self._eos

    def sync(
        self,
        paths: PathLike | Iterable[PathLike],
        *,
        include: Iterable[str] | None = None,
        exclude: Iterable[str] | None = None,
        max_files: int | None = None,
        max_bytes_per_file: int | None = None,
        default_excludes: bool = True,
        gitignore: bool = False,
        rehash: bool = False,
        use_cache: bool | None = None,
        max_bytes: int | None = None,
        progress: Callable[[_core.Progress], object] | None = None,
    ) -> Run:
        """Walks directories, files, or what .dlm documents name; tokenises what the store does not have.

        What is given here wins over a document; `use_cache` and `max_bytes` (for all sections of the store) are its training.cache.
        Several processes may call it at once: they share the work.
        """
        sources, documents = _sources_of(paths)
        sources = [
            (
                path,
                list(own_include) if include is None else list(include),
                list(own_exclude) if exclude is None else list(exclude),
                own_files if max_files is None else max_files,
                own_bytes if max_bytes_per_file is None else max_bytes_per_file,
                boundary,
            )
            for path, own_include, own_exclude, own_files, own_bytes, boundary in sources
        ]
        enabled = _first(documents, "cache_enabled", True) if use_cache is None else use_cache
        sequence_len = _first(documents, "sequence_len", 2048) if self._sequence_len == "auto" else self._sequence_len
        run = _core.sync_sections(
            self._store if enabled else _core.MemoryStore(),  # Without the cache: a store of its own, in memory.
            self._engine,
            self._name,
            self._template,
            self._eos,
            sources,
            sequence_len or 0,
            self._keep_end,
            default_excludes,
            gitignore,
            rehash,
            self._store.path if isinstance(self._store, _core.Store) else None,
            _first(documents, "cache_max_bytes", 0) if max_bytes is None else max_bytes,
            self._threads,
            _warn,
            progress,
        )
        return Run(run, sequence_len)

    def prune(
        self,
        paths: PathLike | Iterable[PathLike] = (),
        older_than: float | datetime.timedelta | str | None = None,
        *,
        progress: Callable[[_core.Progress], object] | None = None,
    ) -> _core.RemovalReport:
        """Drops sections that no run has used for so long, of these trees and of no other, or of all.

        None is what a document says (training.cache.prune_older_than_days), else 90 days.
        """
        if not isinstance(self._store, _core.Store):
            raise InvalidArgument("prune: only a store on disk knows when its sections were used")
        sources, documents = _sources_of(paths)
        age = f"{_first(documents, 'prune_older_than_days', 90)}d" if older_than is None else older_than
        return _core.prune_sections(self._store, [source[0] for source in sources], age, progress)
