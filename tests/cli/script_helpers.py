"""What the scripts in scripts/ can call besides lmemo: make_store DIR, make_forward DIR, make_activations DIR, flip_byte DIR TEXT."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from lmemo_process import flip_byte, make_activations, make_forward, make_store, segment_in  # noqa: E402

if __name__ == "__main__":
    match sys.argv[1:]:
        case ["make_store", directory]:
            make_store(Path(directory))
        case ["make_forward", directory]:
            make_forward(Path(directory))
        case ["make_activations", directory]:
            make_activations(Path(directory))
        case ["flip_byte", directory, text]:
            flip_byte(segment_in(Path(directory)), text.encode())
        case words:
            sys.exit(f"script_helpers.py: what is {words}?")
