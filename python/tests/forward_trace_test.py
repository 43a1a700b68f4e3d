"""Traces: one JSON object a line, whole lines only, in the file within a second whatever happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lmemo.forward import BackendInstrumentation, TraceWriter, _prompt_hash, _TraceEvent

MEMBERS = ["ts", "probe", "view_id", "prompt_hash", "top_k", "op", "wall_ms", "hit"]


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def event(**changes: Any) -> _TraceEvent:
    given: dict[str, Any] = dict(ts=12.5, probe="p", view_id="base", prompt_hash="ab", top_k=256, op="op", wall_ms=1.25, hit=False)
    return _TraceEvent(**given | changes)


def test_without_a_path_nothing_happens() -> None:
    trace = TraceWriter(None)
    trace.write(event())
    trace.write(object())  # Not even looked at.
    trace.flush()
    trace.close()
    trace.close()
    assert (trace.path, trace.lines, trace.lost_lines) == (None, 0, 0)


def test_parents_are_made_and_lines_are_appended(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "down" / "trace.jsonl"
    for number in range(2):
        trace = TraceWriter(path if number else str(path))
        trace.write(event(hit=bool(number), probe=None if number else "p"))
        trace.close()
        assert trace.path == path
    assert path.read_text() == (
        '{"ts": 12.5, "probe": "p", "view_id": "base", "prompt_hash": "ab", "top_k": 256, "op": "op", "wall_ms": 1.25, "hit": false}\n'
        '{"ts": 12.5, "probe": null, "view_id": "base", "prompt_hash": "ab", "top_k": 256, "op": "op", "wall_ms": 1.25, "hit": true}\n'
    )


def test_closing_twice_is_fine_and_a_write_after_that_is_ignored(tmp_path: Path) -> None:
    trace = TraceWriter(tmp_path / "t")
    trace.write(event())
    trace.close()
    trace.close()
    trace.write(event())
    trace.flush()
    assert (len(lines_of(tmp_path / "t")), trace.lines) == (1, 1)
    with TraceWriter(tmp_path / "t") as again:
        again.write(event())
    assert len(lines_of(tmp_path / "t")) == 2


def test_events_made_by_hand_may_hold_any_number(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "t") as trace:
        trace.write(event(ts=12, wall_ms=True, hit=1))
        trace.write(event(ts=Fraction(1, 4), wall_ms=Decimal("0.5"), hit=""))
        with pytest.raises(TypeError, match="must be real number, not str"):
            trace.write(event(ts="now"))
        with pytest.raises(AttributeError, match="op"):
            trace.write(None)
    assert [(line["ts"], line["wall_ms"], line["hit"]) for line in lines_of(tmp_path / "t")] == [(12, 1, True), (0.25, 0.5, False)]
    TraceWriter(None).write(None)


def test_what_cannot_be_shown_costs_its_text_and_not_the_lookup(tmp_path: Path) -> None:
    class Silent:
        def __repr__(self) -> str:
            raise ValueError("I do not say")

    with BackendInstrumentation(trace_path=tmp_path / "t") as inst:
        inst.set_current_probe(Silent())  # type: ignore[arg-type]
        assert inst.cached("op", "base", Silent(), 10**5000, lambda: "value") == "value"
    [line] = lines_of(tmp_path / "t")
    assert (line["probe"], line["top_k"], line["prompt_hash"]) == ("<Silent>", "<int>", _prompt_hash("<Silent>"))


def test_any_text_comes_back(tmp_path: Path) -> None:
    texts = ["", '"', "\\", "\n\r\t\0\x1f\x7f", "é", "日本語", "\U0001f600", "\ud800", "x\udfffy", "</script>", "a" * 100_000]
    with TraceWriter(tmp_path / "t") as trace:
        for text in texts:
            trace.write(event(view_id=text, op=text, probe=text[:1000], prompt_hash=text))
    lines = lines_of(tmp_path / "t")
    assert [line["view_id"] for line in lines] == [line["op"] for line in lines] == texts
    assert [line["probe"] for line in lines] == [text[:1000] for text in texts]
    assert (tmp_path / "t").read_bytes().isascii()


def test_a_lookup_is_a_line(tmp_path: Path) -> None:
    before = time.time()
    with BackendInstrumentation(trace_path=tmp_path / "t") as inst:
        inst.cached("op", "base", "prompt", 256, lambda: time.sleep(0.02))
        inst.set_current_probe("delta_kl")
        inst.cached("op", "base", "prompt", 256, lambda: 1)
        inst.cache.put(("op", "base", "by hand", 1), 1)
        inst.cached("op", "base", "by hand", 1, lambda: 1)
        with pytest.raises(ZeroDivisionError):
            inst.cached("op", "ft", "\ud800", None, lambda: 1 / 0)
    miss, hit, by_hand, failure = lines_of(tmp_path / "t")
    assert list(miss) == list(hit) == MEMBERS
    assert list(failure) == [*MEMBERS, "error"]
    assert (miss["probe"], miss["view_id"], miss["top_k"], miss["op"], miss["hit"]) == (None, "base", 256, "op", False)
    assert miss["wall_ms"] >= 20
    assert (hit["probe"], hit["hit"], hit["prompt_hash"]) == ("delta_kl", True, miss["prompt_hash"])
    assert hit["wall_ms"] < 20
    assert len(miss["prompt_hash"]) == 32 and by_hand["prompt_hash"] != miss["prompt_hash"]
    assert (failure["hit"], failure["error"], failure["top_k"]) == (False, "ZeroDivisionError", None)
    assert all(before - 1 <= line["ts"] <= time.time() + 1 for line in (miss, hit, by_hand, failure))


def test_the_prompt_hash_is_the_same_in_every_process(tmp_path: Path) -> None:
    prompts = ["prompt", "", "\ud800", "日本語", "x" * 1000]
    with BackendInstrumentation(trace_path=tmp_path / "t") as inst:
        for prompt in prompts:
            inst.cached("op", "base", prompt, 1, lambda: 1)
    assert [line["prompt_hash"] for line in lines_of(tmp_path / "t")] == [_prompt_hash(prompt) for prompt in prompts]


def test_a_batch_has_a_line_per_prompt_and_the_wall_is_split_evenly(tmp_path: Path) -> None:
    with BackendInstrumentation(trace_path=tmp_path / "t") as inst:
        inst.cached("op", "base", "b", 1, lambda: 1)

        def compute(indices: list[int]) -> list[int]:
            time.sleep(0.03)
            return indices

        inst.cached_batch("op", "base", ["a", "b", "c", "a", "d"], 1, compute)
        assert inst.cached_batch("op", "base", [], 1, compute) == []
        with pytest.raises(RuntimeError):
            inst.cached_batch("op", "base", ["x", "y"], 1, lambda indices: [])
        wall = inst.stats.scoring_wall_s
    lines = lines_of(tmp_path / "t")[1:]
    assert [line["hit"] for line in lines] == [True, False, False, False, True, False, False]
    misses = lines[1:4]
    assert len({line["wall_ms"] for line in misses}) == 1
    assert 30 <= sum(line["wall_ms"] for line in misses) <= wall * 1000 + 0.01
    assert lines[4]["prompt_hash"] == misses[0]["prompt_hash"] and lines[4]["waited"] is True
    assert [line.get("error") for line in lines[5:]] == ["RuntimeError"] * 2


def test_those_who_waited_are_hits_that_say_so(tmp_path: Path) -> None:
    with BackendInstrumentation(trace_path=tmp_path / "t") as inst:
        barrier = threading.Barrier(4)

        def work(_: int) -> Any:
            barrier.wait()
            return inst.cached("op", "base", "prompt", 1, lambda: time.sleep(0.1))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
    lines = lines_of(tmp_path / "t")
    assert sorted(line["hit"] for line in lines) == [False, True, True, True]
    assert all(line["waited"] for line in lines if line["hit"])


def test_many_threads_write_whole_lines(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "t") as trace:

        def work(thread: int) -> None:
            for number in range(5_000):
                trace.write(event(view_id=f"{thread}-{number}", op="x" * (number % 700)))

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
    lines = lines_of(tmp_path / "t")
    assert len(lines) == trace.lines == 40_000
    for thread in range(8):
        mine = [line["view_id"] for line in lines if line["view_id"].startswith(f"{thread}-")]
        assert mine == [f"{thread}-{number}" for number in range(5_000)]


def test_lines_come_by_themselves_within_a_second(tmp_path: Path) -> None:
    trace = TraceWriter(tmp_path / "t")
    for number in range(3):
        trace.write(event())
        end = time.monotonic() + 10
        while trace.lines <= number:
            assert time.monotonic() < end
            time.sleep(0.01)
        assert len(lines_of(tmp_path / "t")) == number + 1
    trace.close()


def test_what_is_queued_at_exit_is_written(tmp_path: Path) -> None:
    program = f"""
import threading
from lmemo.forward import BackendInstrumentation
inst = BackendInstrumentation(trace_path={str(tmp_path / "t")!r})
for n in range(1000):
    inst.cached("op", "base", str(n), 1, lambda: n)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    assert len(lines_of(tmp_path / "t")) == 1000


def test_kill_9_loses_at_most_the_last_second(tmp_path: Path) -> None:
    path = tmp_path / "t"
    program = f"""
import time
from lmemo.forward import BackendInstrumentation
inst = BackendInstrumentation(trace_path={str(path)!r}, cache_maxsize=10)
n = 0
while True:
    inst.cached("op", str(n), "prompt", n, lambda: n)
    n += 1
    if n % 100 == 0:
        print(n, time.time(), flush=True)
        time.sleep(0.001)
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    time.sleep(2.5)
    process.send_signal(signal.SIGKILL)
    killed = time.time()
    told = [line.split() for line in process.communicate()[0].splitlines() if line.count(" ") == 1]
    lines = path.read_text().split("\n")
    parsed = [json.loads(line) for line in lines[:-1]]  # All but what follows the last newline.
    assert [line["top_k"] for line in parsed] == list(range(len(parsed)))
    old = max(int(n) for n, when in told if len(when) > 12 and float(when) < killed - 1)
    assert len(parsed) >= old > 0


def test_a_torn_line_of_a_killed_writer_does_not_spoil_the_next(tmp_path: Path) -> None:
    (tmp_path / "t").write_text('{"ts": 1}\n{"ts": 2, "pro')
    with TraceWriter(tmp_path / "t") as trace:
        trace.write(event())
    assert (tmp_path / "t").read_text().split("\n")[1] == '{"ts": 2, "pro'
    assert json.loads((tmp_path / "t").read_text().split("\n")[2])["ts"] == 12.5


def test_a_place_that_cannot_be_written_is_an_error_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="trace "):
        TraceWriter(tmp_path / "file" / "t")
    with pytest.raises(OSError, match="trace "):
        BackendInstrumentation(trace_path=tmp_path)


def test_a_full_disk_costs_lines_and_not_the_run(caplog: pytest.LogCaptureFixture) -> None:
    with BackendInstrumentation(trace_path="/dev/full") as inst:
        for number in range(10):
            assert inst.cached("op", "base", str(number), 1, lambda: number) == number
    assert inst.trace.lost_lines == 10
    assert [record.message for record in caplog.records] == ["trace /dev/full: lines are lost: No space left on device"]


def test_a_forked_child_writes_its_own_lines_and_none_of_its_parents(tmp_path: Path, in_child: Callable[..., Any]) -> None:
    trace = TraceWriter(tmp_path / "t")
    for number in range(5):
        trace.write(event(view_id=f"parent {number}"))

    def child() -> int:
        for number in range(3):
            trace.write(event(view_id=f"child {number}"))
        trace.close()
        return os.getpid()

    assert in_child(child) != os.getpid()
    trace.write(event(view_id="parent 5"))
    trace.close()
    written = sorted(line["view_id"] for line in lines_of(tmp_path / "t"))
    assert written == [*(f"child {n}" for n in range(3)), *(f"parent {n}" for n in range(6))]
