"""The report in a real browser: it shows what is there, with the numbers of --json, and needs nothing but itself."""

from __future__ import annotations

import io
import json
import resource
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lmemo as package
import pytest
from PIL import Image
from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parent))
from lmemo_process import Lmemo, programs  # noqa: E402

NASTY = "llama<script>document.title='taken'</script>&\"'\x01\u202e é"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    program = shutil.which("chromium")
    assert program, "chromium is not installed: ./dev test does so"
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield running
        running.close()


@dataclass
class Opened:
    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def value(self, name: str) -> int:
        return int(self.page.locator(f"#{name}").get_attribute("data-value") or "")


def opened(browser: Any, file: Path, scheme: str = "light") -> Opened:
    page = browser.new_page(color_scheme=scheme, viewport={"width": 1100, "height": 1400})
    seen = Opened(page)
    page.on("console", lambda message: seen.complaints.append(message.text))
    page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    page.on("request", lambda request: seen.requests.append(request.url))
    page.goto(file.as_uri())
    return seen


def colours(page: Page) -> dict[tuple[int, ...], int]:
    image = Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("RGB")
    return {colour: count for count, colour in image.getcolors(1 << 24)}


def reported(lmemo: Lmemo, *words: str) -> tuple[Path, dict[str, Any]]:
    ran = lmemo.run("report", "--json", "-o", "page.html", *words)
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout)
    assert said["file"] == str(lmemo.directory / "page.html")
    return lmemo.directory / "page.html", said


@pytest.fixture
def lmemo(tmp_path: Path) -> Lmemo:
    lmemo = Lmemo(programs()[0], tmp_path)
    lmemo.environment["LMEMO_STORE"] = str(tmp_path / "store")
    return lmemo


def fill(lmemo: Lmemo) -> None:
    with package.Store(lmemo.directory / "store") as store:
        for model in ("gpt2", NASTY):
            for number in range(40):
                store.put(package.Key.of("forward", model=model, prompt=f"{number}"), bytes(100 * number))
        for number in range(60):
            store.put(package.Key.of("tokens", tokenizer=bytes([number % 20]) * 32, section=f"{number}"), bytes(3000))


def test_the_page_shows_the_numbers_of_the_json(lmemo: Lmemo, browser: Any) -> None:
    fill(lmemo)
    file, said = reported(lmemo)
    seen = opened(browser, file)
    assert seen.value("entries") == said["entries"] == 140
    assert seen.value("live-bytes") == said["live_bytes"]
    assert seen.value("disk-bytes") == said["disk_bytes"]
    assert seen.value("max-bytes") == said["max_bytes"]
    assert seen.page.locator("#verdict").inner_text() == said["sentence"] == "Nothing needs attention."
    tables = seen.page.locator("table.bars")
    captions = [tables.nth(i).locator("caption").inner_text() for i in range(tables.count())]
    assert captions[:3] == ["By kind", "By model", "By tokenizer"]
    for table, shares in enumerate((said["kinds"], said["models"], said["tokenizers"])):
        rows = tables.nth(table).locator("tbody tr")
        assert rows.count() == len(shares)
        bars = [rows.nth(i).locator(".bar").bounding_box()["width"] for i in range(rows.count())]
        assert max(bars) > 100, "the bars are to be seen"
        longest = bars[0] if shares[0]["name"] != "others" else max(bars)
        for bar, share in zip(bars, shares):
            assert bar == pytest.approx(max(2, longest * share["bytes"] / shares[0]["bytes"]), rel=0.02, abs=1)
    # Twenty tokenizers become eleven and one row for the others; nothing is left out of the sum.
    assert len(said["tokenizers"]) == 12
    assert sum(share["entries"] for share in said["tokenizers"]) == 60


def test_the_page_needs_nothing_else_and_nothing_in_it_runs(lmemo: Lmemo, browser: Any) -> None:
    fill(lmemo)
    file, _ = reported(lmemo)
    seen = opened(browser, file)
    assert seen.complaints == []
    assert [url for url in seen.requests if not url.startswith("data:")] == [file.as_uri()]
    assert seen.page.title() == "lmemo report"
    assert NASTY.replace("\x01", " ").replace("\u202e", "\ufffd") in seen.page.locator("#sizes").inner_text()


def test_it_is_not_empty_and_has_a_dark_side(lmemo: Lmemo, browser: Any) -> None:
    fill(lmemo)
    file, _ = reported(lmemo)
    light, dark = (colours(opened(browser, file, scheme).page) for scheme in ("light", "dark"))
    for seen in (light, dark):
        assert len(seen) > 20, "text and bars have many colours"
        assert max(seen.values()) < 0.97 * sum(seen.values()), "more than a background"
    brightness = [sum(sum(colour) * count for colour, count in seen.items()) / sum(seen.values()) for seen in (light, dark)]
    assert brightness[0] > 600 > 200 > brightness[1]


def test_every_picture_has_a_text_and_every_section_a_name(lmemo: Lmemo, browser: Any) -> None:
    fill(lmemo)
    page = opened(browser, reported(lmemo)[0]).page
    pictures = page.locator("svg")
    assert all(pictures.nth(i).get_attribute("aria-label") for i in range(pictures.count()))
    sections = page.locator("section")
    names = [sections.nth(i).get_attribute("aria-labelledby") for i in range(sections.count())]
    assert len(set(names)) == len(names) >= 4
    assert all(page.locator(f"#{name}").inner_text() for name in names)


def test_a_hundred_thousand_entries_make_no_larger_page(lmemo: Lmemo, browser: Any) -> None:
    fill(lmemo)
    few = reported(lmemo)[0].stat().st_size
    with package.Store(lmemo.directory / "store") as store:
        store.put_many((package.Key.of("forward", model=f"m{number % 300}", prompt=f"{number}"), b"value") for number in range(100_000))
    file, said = reported(lmemo)
    assert said["entries"] == 100_140
    assert file.stat().st_size < few + 20_000
    seen = opened(browser, file)
    assert seen.complaints == []
    assert seen.value("entries") == 100_140
    assert seen.page.locator("*").count() < 2_000


def test_without_a_store_there_is_a_page_that_says_so_and_still_no_store(lmemo: Lmemo, browser: Any) -> None:
    file, said = reported(lmemo)
    assert said["entries"] == 0
    assert opened(browser, file).page.locator("#verdict").inner_text() == "Nothing is stored yet."
    assert not (lmemo.directory / "store").exists()


def test_a_page_that_cannot_be_written_is_an_error_and_leaves_nothing(lmemo: Lmemo) -> None:
    ran = lmemo.run("report", "-o", "no/such/folder/page.html")
    assert ran.returncode == 1
    assert "no/such/folder" in ran.stderr
    assert sorted(path.name for path in lmemo.directory.iterdir()) == []

    def no_room() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    assert lmemo.run("report", "-o", "page.html", preexec_fn=no_room).returncode == 1
    assert sorted(path.name for path in lmemo.directory.iterdir()) == []
    (lmemo.directory / "folder").mkdir()
    refused = lmemo.run("report", "-o", "folder")
    assert refused.returncode == 2 and "folder is a directory, expected a file" in refused.stderr


ACTIVATIONS = """
import sys, torch
from lmemo import activations
activations.set_cache_backend(sys.argv[1])
for number in range(96):
    layers = range(4) if number < 48 else range(2)
    activations.save_prompt_activations("tiny", f"prompt {number}", list(layers), torch.ones(1, 3, 8 * len(layers)), torch.ones(1, 3))
"""


def test_the_map_of_layers_is_full_where_states_are(lmemo: Lmemo, browser: Any) -> None:
    subprocess.run([sys.executable, "-c", ACTIVATIONS, str(lmemo.directory / "store")], check=True)
    file, said = reported(lmemo)
    assert [(model["prompts"], model["layers"]) for model in said["activations"]] == [(96, 4)]
    seen = opened(browser, file)
    assert seen.complaints == []
    cells = seen.page.locator("#presence svg rect")
    titles = [cells.nth(i).locator("title").text_content() or "" for i in range(cells.count())]
    assert titles[0] == "prompts 0–1, layer 0: 100.0 %"
    assert len(titles) == 48 * 4
    assert sum(title.endswith("100.0 %") for title in titles if "layer 0:" in title or "layer 1:" in title) == 96
    assert str(seen.page.locator("#presence svg").get_attribute("aria-label")).endswith(": 75.0 % of the map")


TOKENIZER = {
    "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": {"type": "WhitespaceSplit"},
    "post_processor": None, "decoder": None,
    "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, **{f"w{number}": number + 1 for number in range(50)}}, "unk_token": "[UNK]"},
}  # fmt: skip


def words(count: int, seed: int) -> str:
    return " ".join(f"w{(seed * 7 + number * number) % 50}" for number in range(count))


def test_runs_and_reasons_are_drawn(lmemo: Lmemo, browser: Any) -> None:
    (lmemo.directory / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    tree = lmemo.directory / "tree"
    tree.mkdir()
    for number in range(20):
        (tree / f"{number}.txt").write_text(words(50, number))
    for _ in range(2):
        assert lmemo.run("sections", "sync", "tree", "--tokenizer", "tokenizer.json").returncode == 0
    (tree / "3.txt").write_text("w1 w2 w3")
    assert lmemo.run("sections", "sync", "tree", "--tokenizer", "tokenizer.json").returncode == 0

    file, said = reported(lmemo)
    assert [(run["cache_hits"], run["cache_misses"]) for run in said["runs"]] == [(0, 20), (20, 0), (19, 1)]
    assert sum(said["miss_reasons"].values()) == 21
    seen = opened(browser, file)
    assert seen.complaints == []
    dots = seen.page.locator("#runs svg circle title")
    assert [(dots.nth(i).text_content() or "").split(" · ")[-1] for i in range(dots.count())] == [
        "0.0 % hits (0/20)",
        "100.0 % hits (20/20)",
        "95.0 % hits (19/20)",
    ]
    assert seen.value("runs-count") == 3
    rows = seen.page.locator("#misses tbody tr")
    assert rows.count() == len(said["miss_reasons"])


def test_each_face_has_its_own_line_and_hit_rate(lmemo: Lmemo, browser: Any) -> None:
    (lmemo.directory / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    (lmemo.directory / "tree").mkdir()
    (lmemo.directory / "tree" / "a.txt").write_text(words(50, 1))
    (lmemo.directory / "rows.jsonl").write_text("".join(json.dumps({"text": words(9, n)}) + "\n" for n in range(30)))
    for _ in range(2):
        assert lmemo.run("sections", "sync", "tree", "--tokenizer", "tokenizer.json").returncode == 0
    built = lmemo.run("dataset", "build", "-t", "tokenizer.json", "--train-file", "rows.jsonl", "-o", "set", "--no-eos")
    assert built.returncode == 0, built.stderr

    file, said = reported(lmemo)
    assert [(face["face"], face["cache_hits"], face["cache_misses"]) for face in said["faces"]] == [("sections", 1, 1), ("dataset", 0, 30)]
    seen = opened(browser, file)
    assert seen.complaints == []
    for face in said["faces"]:
        assert float(seen.page.locator(f"#hit-rate-{face['face']}").get_attribute("data-value") or "") == face["hit_rate"]
    assert seen.page.locator("#runs svg polyline").count() == 2
    assert seen.page.locator("#runs .legend span").all_inner_texts() == ["sections", "dataset"]


def test_a_damaged_store_needs_attention_and_the_command_can_be_run(lmemo: Lmemo) -> None:
    fill(lmemo)
    odd = lmemo.directory / "a store's"
    (lmemo.directory / "store").rename(odd)
    segment = next((odd / "segments").iterdir())
    segment.write_bytes(segment.read_bytes()[:-9])
    _, said = reported(lmemo, "--store", str(odd))
    assert said["needs_attention"] and "damaged" in said["sentence"]
    assert lmemo.run(*shlex.split(said["run"])[1:]).returncode in (0, 3)
    _, said = reported(lmemo, "--store", str(odd))
    assert not said["needs_attention"]


def test_the_map_of_chunks_shows_gaps_and_damage(lmemo: Lmemo, browser: Any) -> None:
    (lmemo.directory / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    lines = [json.dumps({"text": words(40 + number % 30, number)}) for number in range(400)]
    (lmemo.directory / "corpus.jsonl").write_text("\n".join(lines) + "\n")
    built = lmemo.run(
        "chunks", "build", "corpus.jsonl", "--tokenizer", "tokenizer.json", "--output", "set", "--sequence-length", "64", "--chunk-sequences", "20"
    )
    assert built.returncode == 0, built.stderr
    chunks = sorted((lmemo.directory / "set/chunks").iterdir())
    assert len(chunks) > 6
    chunks[2].unlink()
    damaged = bytearray(chunks[4].read_bytes())
    damaged[len(damaged) // 2] ^= 1
    chunks[4].write_bytes(damaged)

    file, said = reported(lmemo, "--chunks", "set")
    (shown,) = said["chunks"]
    assert (shown["total_chunks"], shown["missing"], shown["damaged"], shown["stale"]) == (len(chunks), 1, 1, 0)
    assert said["needs_attention"] and said["run"].startswith("lmemo chunks repair ")
    seen = opened(browser, file)
    assert seen.complaints == []
    for name, member in (("total", "total_chunks"), ("missing", "missing"), ("damaged", "damaged"), ("rows", "total_sequences"), ("tokens", "total_tokens"), ("bytes", "bytes")):
        assert seen.value(f"chunks-{name}") == shown[member]
    cells = seen.page.locator("#chunks svg").first.locator("rect")
    titles = [cells.nth(i).locator("title").text_content() for i in range(cells.count())]
    assert titles[2] == "chunk 2: missing" and titles[4] == "chunk 4: damaged" and titles[0] == "chunk 0: present"
    assert len(titles) == len(chunks)
    assert seen.page.locator("#chunks figure").count() == 2
    assert "lmemo chunks repair" in seen.page.locator("#verdict code").inner_text()


def test_a_set_of_ten_thousand_chunks_is_drawn_in_stretches(lmemo: Lmemo, browser: Any) -> None:
    (lmemo.directory / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    with open(lmemo.directory / "corpus.jsonl", "w") as lines:
        for number in range(20_000):
            lines.write(json.dumps({"text": words(30, number)}) + "\n")
    plan = ["corpus.jsonl", "--tokenizer", "tokenizer.json", "--output", "set", "--sequence-length", "32", "--chunk-sequences", "1"]
    for command in (["plan", *plan], ["fill", "set", "--start-chunk", "3000", "--end-chunk", "4000"]):
        assert lmemo.run("chunks", *command).returncode in (0, 3)  # Gaps are what was asked for.
    file, said = reported(lmemo, "--chunks", "set")
    (shown,) = said["chunks"]
    assert (shown["total_chunks"], shown["missing"]) == (10_000, 9_000)
    assert file.stat().st_size < 400_000
    seen = opened(browser, file)
    assert seen.complaints == []
    assert seen.page.locator("#chunks svg").first.locator("rect").count() == 1200
    assert seen.page.locator("*").count() < 5_000
    lengths = seen.page.locator("#chunks figure").nth(1).locator("rect title").all_text_contents()
    assert lengths == ["16–32 tokens: 512 documents"]  # All have 30 tokens; so many rows are looked at.
