"""Every kind of input of `lmemo chunks`, from real files and from a web server that breaks off and lies."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import hub_imitation
import pyarrow
import pyarrow.feather
import pyarrow.parquet
import pytest
from chunk_commands import LMEMO, build, copy_of, corpus, digests, run, tokenizer, write_lines  # noqa: F401


@pytest.fixture(scope="module")
def texts(corpus: Path) -> list[str]:
    return [json.loads(line)["text"] for line in corpus.read_text().splitlines()][:300]


@pytest.fixture(scope="module")
def plain(texts: list[str], tokenizer: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plain")
    write_lines(folder / "rows.jsonl", texts)
    build(folder / "rows.jsonl", tokenizer, folder / "set")
    return folder


def chunk_bytes(directory: Path) -> list[str]:
    assert run("verify", directory)["complete"]
    return list(digests(directory).values())


def try_build(address: str, tokenizer: Path, directory: Path, hub: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "HF_HUB_OFFLINE"}
    environment.update(HF_HUB_DISABLE_XET="1", HF_HOME=str(directory.parent / "hf"), **({"HF_ENDPOINT": hub} if hub else {}))
    words = ["build", address, "--tokenizer", str(tokenizer), "--output", str(directory), "--chunk-sequences", "100", "--json"]
    return subprocess.run([*LMEMO, "chunks", *words], capture_output=True, text=True, env=environment)


def report_of(ran: subprocess.CompletedProcess[str]) -> Any:
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return json.loads(ran.stdout)


# Files.


def test_lines_packed_by_zstd_and_gzip_give_the_bytes_of_plain_ones(plain: Path, tokenizer: Path, tmp_path: Path) -> None:
    lines = (plain / "rows.jsonl").read_bytes()
    (tmp_path / "one.jsonl.gz").write_bytes(gzip.compress(lines[:1000]) + gzip.compress(lines[1000:]))
    with pyarrow.CompressedOutputStream(str(tmp_path / "two.jsonl.zst"), "zstd") as file:
        file.write(lines)
    for name in ("one.jsonl.gz", "two.jsonl.zst"):
        build(tmp_path / name, tokenizer, tmp_path / f"set-{name}")
        assert chunk_bytes(tmp_path / f"set-{name}") == chunk_bytes(plain / "set")


def test_a_packed_file_that_ends_too_soon_is_an_error_with_its_name(plain: Path, tokenizer: Path, tmp_path: Path) -> None:
    whole = gzip.compress((plain / "rows.jsonl").read_bytes())
    (tmp_path / "cut.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    ran = try_build(str(tmp_path / "cut.jsonl.gz"), tokenizer, tmp_path / "set")
    assert ran.returncode == 4 and "cut.jsonl.gz" in ran.stderr


def test_arrow_streams_arrow_files_and_parquet_have_the_tokens_of_plain_lines(plain: Path, texts: list[str], tokenizer: Path, tmp_path: Path) -> None:
    table = pyarrow.table({"n": list(range(len(texts))), "text": texts})
    with pyarrow.OSFile(str(tmp_path / "stream.arrow"), "wb") as file, pyarrow.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table, max_chunksize=100)
    with pyarrow.OSFile(str(tmp_path / "file.arrow"), "wb") as file, pyarrow.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=100)
    pyarrow.feather.write_feather(table, str(tmp_path / "table.feather"))
    for part in range(3):
        pyarrow.parquet.write_table(table.slice(part * 100, 100), tmp_path / f"part-{part}.parquet", row_group_size=40)
    for name in ("stream.arrow", "file.arrow", "table.feather", "part-*.parquet"):
        report = build(tmp_path / name, tokenizer, tmp_path / f"set-{name[:4]}")
        assert report["documents"] == len(texts)
        assert run("verify", tmp_path / f"set-{name[:4]}")["total_tokens"] == run("show", plain / "set")["total_tokens"]


def test_a_table_without_the_column_is_an_error(tokenizer: Path, tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"body": ["x"]}), tmp_path / "a.parquet")
    ran = try_build(str(tmp_path / "a.parquet"), tokenizer, tmp_path / "set")
    assert ran.returncode == 1 and "text" in ran.stderr and "a.parquet" in ran.stderr


# From a web server.


def test_a_download_that_breaks_off_goes_on_where_it_was(plain: Path, tokenizer: Path, tmp_path: Path) -> None:
    content = (plain / "rows.jsonl").read_bytes()
    with hub_imitation.serving(hub_imitation.Files({"rows.jsonl": content}, breaks={"rows.jsonl": [50_000, 70_000]})) as server:
        report_of(try_build(f"{server.address}/rows.jsonl", tokenizer, tmp_path / "set"))
    assert server.ranges_of("rows.jsonl") == [None, "bytes=50000-", "bytes=120000-"]
    assert chunk_bytes(tmp_path / "set") == chunk_bytes(plain / "set")  # verify needs no network.


def test_a_file_that_changed_in_between_is_fetched_anew(plain: Path, tokenizer: Path, tmp_path: Path) -> None:
    content = (plain / "rows.jsonl").read_bytes()
    other = b'{"text": "another file altogether"}\n' * 3000
    files = hub_imitation.Files({"rows.jsonl": other}, breaks={"rows.jsonl": [5000]}, becomes={"rows.jsonl": content})
    with hub_imitation.serving(files) as server:
        report_of(try_build(f"{server.address}/rows.jsonl", tokenizer, tmp_path / "set"))
    assert server.ranges_of("rows.jsonl") == [None, "bytes=5000-"]  # Asked for the rest, got all of the new one.
    assert chunk_bytes(tmp_path / "set") == chunk_bytes(plain / "set")


@pytest.mark.parametrize("told_by", ["server", "address"])
def test_what_arrives_with_another_digest_is_refused(plain: Path, tokenizer: Path, tmp_path: Path, told_by: str) -> None:
    content = (plain / "rows.jsonl").read_bytes()
    wrong = content.replace(b"e", b"a", 1)
    digest = hashlib.sha256(content).hexdigest() if told_by == "address" else ""
    with hub_imitation.serving(hub_imitation.Files({"rows.jsonl": content}, served={"rows.jsonl": wrong}, tells_digest=told_by == "server")) as server:
        address = f"{server.address}/rows.jsonl" + (f"#sha256={digest}" if digest else "")
        refused = try_build(address, tokenizer, tmp_path / "set")
        assert refused.returncode == 1 and "SHA-256" in refused.stderr
        assert not list((tmp_path / "set" / "imported").glob("*.jsonl"))
        server.served.clear()
        report_of(try_build(address, tokenizer, tmp_path / "set"))
    assert chunk_bytes(tmp_path / "set") == chunk_bytes(plain / "set")


def test_a_missing_file_is_not_asked_for_again(tokenizer: Path, tmp_path: Path) -> None:
    with hub_imitation.serving(hub_imitation.Files({})) as server:
        ran = try_build(f"{server.address}/none.jsonl", tokenizer, tmp_path / "set")
    assert ran.returncode == 1 and "404" in ran.stderr and len(server.requests) == 1


# From the hub.


def hub_files(plain: Path, tmp_path: Path) -> dict[str, bytes]:
    lines = (plain / "rows.jsonl").read_bytes().splitlines(keepends=True)
    texts = [json.loads(line)["text"] for line in lines[200:]]
    pyarrow.parquet.write_table(pyarrow.table({"text": texts}), tmp_path / "b.parquet")
    return {"data/a.jsonl": b"".join(lines[:200]), "data/b.parquet": (tmp_path / "b.parquet").read_bytes(), "README.md": b"# A data set"}


def test_a_data_set_of_the_hub_comes_whole_though_it_breaks_off(plain: Path, texts: list[str], tokenizer: Path, tmp_path: Path) -> None:
    files = hub_files(plain, tmp_path)
    # The hub's client keeps what arrived in steps of 10 MiB.
    files["data/a.jsonl"] += json.dumps({"no text": "x" * (12 << 20)}).encode() + b"\n"
    with hub_imitation.serving(hub_imitation.Files(files, large=frozenset({"data/b.parquet"}), breaks={"data/a.jsonl": [11 << 20]})) as hub:
        report = report_of(try_build("hf://datasets/OWNER/NAME", tokenizer, tmp_path / "set", hub.address))
        part = report_of(try_build("hf://datasets/OWNER/NAME@main/data/*.parquet", tokenizer, tmp_path / "part", hub.address))
        none = try_build("hf://datasets/OWNER/NAME/other", tokenizer, tmp_path / "none", hub.address)
    assert hub.ranges_of("a.jsonl")[:2] == [None, f"bytes={10 << 20}-"] and hub.ranges_of("README.md") == []
    assert (report["documents"], report["tokens"]) == (len(texts), run("show", plain / "set")["total_tokens"])
    assert report["left_out"]["missing_field"] == 1 and part["documents"] == 100
    assert none.returncode == 1 and "none of its 3 files" in none.stderr
    assert run("verify", tmp_path / "set")["complete"]  # Without the hub.


@pytest.mark.parametrize("name", ["data/a.jsonl", "data/b.parquet"])
def test_a_file_that_is_not_what_the_hub_lists_is_refused(plain: Path, tokenizer: Path, tmp_path: Path, name: str) -> None:
    files = hub_files(plain, tmp_path)
    wrong = bytearray(files[name])
    wrong[len(wrong) // 2] ^= 1
    with hub_imitation.serving(hub_imitation.Files(files, large=frozenset({"data/b.parquet"}), served={name: bytes(wrong)})) as hub:
        refused = try_build("hf://datasets/OWNER/NAME", tokenizer, tmp_path / "set", hub.address)
        assert refused.returncode == 1 and name in refused.stderr and "refused" in refused.stderr
        hub.served.clear()
        assert report_of(try_build("hf://datasets/OWNER/NAME", tokenizer, tmp_path / "set", hub.address))["complete"]


# Directories.


def test_tables_in_a_directory_are_documents_too(texts: list[str], tokenizer: Path, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    write_lines(folder / "a.jsonl", texts[:50])
    table = pyarrow.table({"text": texts[50:100]})
    pyarrow.parquet.write_table(table, folder / "b.parquet")
    pyarrow.feather.write_feather(table, str(folder / "c.arrow"))
    for inputs in ([folder], [f"{folder}/*"], [f"{tmp_path}/i?/**"]):
        report = run("build", *inputs, "-t", tokenizer, "-o", tmp_path / f"set-{len(str(inputs))}")
        assert report["documents"] == 150 and report["left_out"]["invalid_utf8"] == 0
    assert run("estimate", folder, "-t", tokenizer)["documents"] == 150


def test_a_set_within_its_input_is_no_input(texts: list[str], tokenizer: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", texts[:50])
    (tmp_path / "out2").write_text("A file beside the set.")
    words = ["build", tmp_path, "-t", tokenizer, "-o", tmp_path / "out"]
    assert run(*words)["documents"] == 51
    assert run(*words)["built"] == 0 and run("grow", tmp_path / "out")["built"] == 0
    assert run("grow", tmp_path / "out", f"{tmp_path}/**")["built"] == 0
