"""Runs the real `lmemo` program, as a process of its own, with or without a terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def programs() -> list[Path]:
    """The stand-alone program and the console script; LMEMO_BINARY names another one to test alone."""
    if named := os.environ.get("LMEMO_BINARY"):
        return [Path(named)]
    build = Path(os.environ.get("LMEMO_BUILD_DIR", ROOT / "build" / "dev"))
    found = [path for path in (build / "bin" / "lmemo", ROOT / ".venv" / "bin" / "lmemo") if path.exists()]
    assert found, "no lmemo program: run ./dev build, or set LMEMO_BINARY"
    return found


def name_of(program: Path) -> str:
    return "console-script" if ".venv" in program.parts else "stand-alone"


class Lmemo:
    """One program in one working directory, away from the user's settings and store."""

    def __init__(self, program: Path, directory: Path) -> None:
        self.program = program
        self.directory = directory
        self.environment = {
            "PATH": f"{program.parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(directory / "home"),
            "TMPDIR": tempfile.gettempdir(),
            "LANG": "C.UTF-8",
            "TERM": "xterm",
            "LMEMO_CORPUS": str(ROOT / "examples" / "corpus"),
        }

    def run(
        self, *words: str, preexec_fn: Callable[[], None] | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.program), *words],
            cwd=self.directory,
            env=self.environment | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            preexec_fn=preexec_fn,
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(self.program), *words],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # A background job ignores Ctrl-C.
        )

    def on_terminal(self, *words: str, answer: bytes = b"", after: bytes = b"[y/N] ", **variables: str) -> tuple[int, str]:
        """Runs at a terminal of its own; types `answer` once `after` has appeared. Exit code and all that was shown."""
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(self.directory)
            os.execve(self.program, [str(self.program), *words], self.environment | variables)
        shown = b""
        is_answered = not answer
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if not select.select([terminal], [], [], 1)[0]:
                continue
            try:
                piece = os.read(terminal, 65536)
            except OSError:  # The other side is closed.
                break
            if not piece:
                break
            shown += piece
            if not is_answered and after in shown:
                os.write(terminal, answer)
                is_answered = True
        else:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        os.close(terminal)
        return os.waitstatus_to_exitcode(status), shown.decode().replace("\r\n", "\n")


def make_store(directory: Path, tokens: int = 3, forward: int = 1) -> None:
    """A small store, always with the same entries, in one segment."""
    code = """
import sys, lmemo
path, tokens, forward = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with lmemo.Store(path, publish_seconds=1000) as store:
    for number in range(tokens):
        store.put(lmemo.Key.of("tokens", section=number, tokenizer="gpt2", lower=False), b"t" * (100 + number % 100))
    for number in range(forward):
        store.put(lmemo.Key.of("forward", prompt=f"prompt {number}", temperature=0.5), b"f" * 1000)
    store.flush()
"""
    python = ROOT / ".venv" / "bin" / "python"
    subprocess.run(
        [str(python) if python.exists() else sys.executable, "-c", code, str(directory), str(tokens), str(forward)],
        check=True,
        timeout=60,
    )


def make_forward(directory: Path) -> None:
    """A store with results of scoring calls of three views, and one entry of another kind."""
    code = """
import sys, lmemo
from lmemo.forward import BackendInstrumentation, ModelView
with lmemo.Store(sys.argv[1], publish_seconds=1000) as store, BackendInstrumentation(store=store) as inst:
    store.put(lmemo.Key.of("tokens", section=1), b"t" * 100)
    views = ["base", ModelView("base", model="gpt2", dtype="float32"), ModelView("ft", model="gpt2", adapter="runs/7", dtype="float32")]
    for view in views:
        inst.cached_batch("next_token_dist", view, [f"prompt {n}" for n in range(3)], 256, lambda missing: [b"x" * 100 for _ in missing])
    inst.cached("rolling_logprob", "base", "text", 0, lambda: -1.5)
"""
    python = ROOT / ".venv" / "bin" / "python"
    subprocess.run([str(python) if python.exists() else sys.executable, "-c", code, str(directory)], check=True, timeout=60)


def make_activations(directory: Path) -> None:
    """A store with states of two models of one name, one of them with a layer that only some prompts have."""
    code = """
import sys, lmemo, torch
from lmemo import activations
from lmemo.activations import ModelIdentity
activations.set_cache_backend(lmemo.Store(sys.argv[1], publish_seconds=1000))
one, other = ModelIdentity("gpt2", dtype="float32", weights="a1b2"), ModelIdentity("gpt2", dtype="float32", weights="c3d4")
for number in range(10):
    states = torch.arange(2 * 3 * 4, dtype=torch.float32).reshape(1, 4, 6)[:, : 1 + number % 4]
    mask = torch.ones(1, states.shape[1], dtype=torch.int64)
    activations.save_prompt_activations(one, f"prompt {number}", [0, 5], states, mask)
    if number < 4:
        activations.save_prompt_activations(one, f"prompt {number}", [7], states[..., :3], mask)
activations.save_prompt_pooled_activations(other, "prompt 1", [3, 4], torch.ones(1, 6), "mean")
activations.save_prompt_logits(other, "prompt 1", torch.arange(20.0).reshape(1, 1, 20), torch.ones(1, 1), top_k=7)
activations.save_prompt_perplexity(other, "prompt 1", torch.ones(3), torch.ones(2), torch.arange(3))
activations.get_backend().flush()
"""
    python = ROOT / ".venv" / "bin" / "python"
    subprocess.run([str(python) if python.exists() else sys.executable, "-c", code, str(directory)], check=True, timeout=60)


def segment_in(directory: Path) -> Path:
    [segment] = [path for path in directory.rglob("*") if path.is_file() and path.stat().st_size > 500]
    return segment


def flip_byte(file: Path, marker: bytes) -> None:
    """Damages the first byte of `marker` in the file."""
    data = bytearray(file.read_bytes())
    at = data.index(marker)
    data[at] ^= 0xFF
    file.chmod(0o644)
    file.write_bytes(data)


def normalised(text: str, directory: Path) -> str:
    """What changes from run to run, replaced by words."""
    text = text.replace(str(directory), "DIR")
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", text)
    text = re.sub(r"\((?:\d+ (?:s|min|h|d) ago|just now)\)", "(AGE)", text)
    text = re.sub(r"stored (?:\d+ (?:s|min|h|d) ago|just now)", "stored AGE", text)
    text = re.sub(r"(?<=  )(?:\d+ (?:s|min|h|d) ago|just now)(?=  )", "AGE", text)
    text = re.sub(r"\bin [\d.]+ (?:µs|ms|s)$", "in SECONDS", text, flags=re.MULTILINE)
    text = re.sub(r'"written_ns": \d+', '"written_ns": NANOSECONDS', text)
    text = re.sub(r'("nonce": "|nonce )[0-9a-f]{16}', r"\1NONCE", text)
    text = re.sub(r"checksum [0-9a-f]{16}, expected [0-9a-f]{16}", "checksum FOUND, expected EXPECTED", text)
    text = re.sub(r"[0-9a-f]{16,}(?:-[0-9a-f]+)*\.(seg|open|tmp)", r"SEGMENT.\1", text)
    return re.sub(r"(?<=\S) {2,}", "  ", text)  # Columns are as wide as the words that were replaced.
