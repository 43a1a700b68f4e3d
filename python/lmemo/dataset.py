"""Tokenised train/eval data sets: built once, opened in well under a second, used only if they really match.

    from lmemo import dataset

    data = dataset.ensure("train.json")                        # A training config, or the same as keywords:
    data = dataset.ensure(model_name="models/qwen", train_file="train.jsonl", eval_split=0.1,
                          cached_tokens_dir="cache/tokens", max_length=1024)
    data["train"], data["eval"]                                # datasets.Dataset, memory-mapped

Under torchrun every rank may call it: one builds, the others wait for it, no barrier is needed. docs/dataset.md has the
parameters and the layout on disk.
"""

from __future__ import annotations

import json
import logging
import os

from lmemo._core import Store, dataset_check, dataset_ensure, dataset_resolve
from lmemo._errors import InvalidArgument

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import Any

    import datasets

    from lmemo._core import Progress, StoreBase

__all__ = ["Difference", "Outcome", "Report", "build", "check", "ensure"]

_log = logging.getLogger("lmemo")


class Difference:
    """One thing in which a data set is not what was asked for."""

    __slots__ = {
        "field": "What differs: 'max_length', 'tokenizer', 'train file 1', …",
        "built": "With what the set was built.",
        "asked": "What was asked for.",
        "text": "Both in words.",
    }

    def __init__(self, field: str, built: str, asked: str, text: str) -> None:
        self.field, self.built, self.asked, self.text = field, built, asked, text

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Difference({self.text!r})"


class Report:
    """Whether a data set is what was asked for, and if not, why not. True if it is."""

    __slots__ = {"differences": "Empty if it is valid."}

    def __init__(self, differences: list[Difference]) -> None:
        self.differences = differences

    @property
    def is_valid(self) -> bool:
        """True if there is nothing to build."""
        return not self.differences

    def __bool__(self) -> bool:
        return self.is_valid

    def __repr__(self) -> str:
        return "Report(valid)" if self.is_valid else f"Report({'; '.join(map(str, self.differences))})"


class Outcome:
    """What `build` did: counts of rows, tokens and problems."""

    __slots__ = {
        "directory": "Where the set is.",
        "was_built": "False if what was there matched.",
        "differences": "Why it was built.",
        "counts": "lines, rows_tokenised, rows_from_store, train_rows, train_tokens, padding_tokens, bad_lines, problems, …",
    }

    def __init__(self, values: dict[str, Any]) -> None:
        self.directory: Path = values.pop("directory")
        self.was_built: bool = values.pop("was_built")
        self.differences = [Difference(*parts) for parts in values.pop("differences")]
        self.counts: dict[str, Any] = values

    def __repr__(self) -> str:
        return f"Outcome({str(self.directory)!r}, {'built' if self.was_built else 'valid'}, {self.counts['train_rows']} train rows)"


def build(
    config: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    *,
    store: StoreBase | None = None,
    progress: Callable[[Progress], object] | None = None,
    note: Callable[[str], object] | None = None,
    rehash: bool = False,
    force: bool = False,
    **parameters: Any,
) -> Outcome:
    """Builds the data set if it is not there or does not match, and says what was done.

    `config` is a JSON file or a mapping; parameters given by keyword win. Rows are kept in `store`, else in the default one.
    """
    from lmemo._chat import chat_renderer

    text, file = _request(config, parameters)
    values = dataset_ensure(
        text, file, lambda: _default_store() if store is None else store, chat_renderer, note or _log.info, progress, rehash, force
    )
    for warning in values.pop("warnings"):
        _log.warning("%s", warning)
    outcome = Outcome(values)
    if outcome.was_built and outcome.counts["bad_lines"]:
        shown = "; ".join(outcome.counts["first_problems"])
        _log.warning("%d of %d lines became no row: %s", outcome.counts["bad_lines"], outcome.counts["lines"], shown)
    return outcome


def ensure(
    config: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    *,
    store: StoreBase | None = None,
    progress: Callable[[Progress], object] | None = None,
    note: Callable[[str], object] | None = None,
    rehash: bool = False,
    **parameters: Any,
) -> datasets.DatasetDict:
    """The data set, built if needed: `build`, then `datasets.load_from_disk`."""
    try:
        import datasets
    except ImportError:
        raise ImportError("lmemo.dataset.ensure gives a datasets.DatasetDict: pip install datasets") from None

    while True:
        outcome = build(config, store=store, progress=progress, note=note, rehash=rehash, **parameters)
        # The files of one set, which the next build leaves alone, so that no two halves meet.
        folder = dataset_resolve(outcome.directory) / "tokenized_dataset"
        try:
            loaded = datasets.load_from_disk(str(folder))
        except FileNotFoundError:
            if folder.exists():
                raise
            continue  # Another process, with other parameters, replaced it just now.
        assert isinstance(loaded, datasets.DatasetDict)
        return loaded


def check(
    config: str | os.PathLike[str] | Mapping[str, Any] | None = None, *, rehash: bool = False, **parameters: Any
) -> Report:
    """Whether the data set is what these parameters would build. Looks only."""
    text, file = _request(config, parameters)
    return Report([Difference(*parts) for parts in dataset_check(text, file, rehash)])


_NAMES = frozenset(
    "model_name model_name_or_path tokenizer train_file train_files eval_file eval_files cached_tokens_dir eval_split seed max_length "
    "padding overflow loss template text_field messages_field prompt_field completion_field append_eos eos_token pad_token strict "
    "workers use_cached_tokens".split()
)


def _request(config: str | os.PathLike[str] | Mapping[str, Any] | None, parameters: dict[str, Any]) -> tuple[str, str]:
    """The JSON of what is asked for, and the file it is said to come from."""
    file = "config"
    values: dict[str, Any] = {}
    if isinstance(config, (str, os.PathLike)):
        file = os.fspath(config)
        with open(file, encoding="utf-8") as opened:
            try:
                values = json.load(opened)
            except ValueError as error:
                raise InvalidArgument(f"{file}: not JSON: {error}") from None
        if not isinstance(values, dict):
            raise InvalidArgument(f"{file}: expected one JSON object")
    elif config is not None:
        values = dict(config)
    if unknown := sorted(parameters.keys() - _NAMES):
        raise TypeError(f"{unknown[0]!r} is no parameter of a data set; these are: {', '.join(sorted(_NAMES))}")
    values.update(parameters)
    if values.get("use_cached_tokens") is False:
        raise InvalidArgument(f"{file}: use_cached_tokens is false, so there is no data set to open")
    # Other names go along without their values, which may be anything: a mistyped one is told.
    return json.dumps({str(name): values[name] if name in _NAMES else None for name in values}, default=os.fspath), file


_store: Store | None = None


def _default_store() -> Store | None:
    """Opened once a process; None, with a warning, if it cannot be: rows are then not kept."""
    global _store
    if _store is None:
        try:
            _store = Store()
        except Exception as error:
            _log.warning("no store, so rows are not kept for the next build: %s", error)
    return _store
