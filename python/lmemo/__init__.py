"""lmemo: never compute twice what a language-model workflow already computed."""

from lmemo._core import version as __version__

__all__ = ["__version__"]
