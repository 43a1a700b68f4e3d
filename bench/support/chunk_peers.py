"""What others do from JSON lines, or from ids, to files that a training reads. For bench/chunks_bench.py.

Each function runs in a fresh process and gives seconds, CPU seconds and tokens written; the clock starts after imports.
All tokenise with HuggingFace's tokenizers, two processes of one thread each, and write uncompressed unless told otherwise, which is their quickest way.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import shutil
import subprocess
import sys
import time
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / "build" / "bench-peers"
# Without what they would pull in: CUDA, torchvision, the clients of five clouds.
PACKAGES = (
    "litdata mosaicml-streaming megatron-core datatrove lightning-utilities cramjam obstore boto3 botocore s3transfer jmespath brotli python-snappy zstd "
    "catalogue tifffile pillow xxhash humanize loguru orjson"
)
WORKERS = 2
LENGTH = 512


def need_peers() -> None:
    if not all((PEERS / name).exists() for name in ("streaming", "litdata", "datatrove", "megatron", "orjson")):
        shutil.rmtree(PEERS, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", PEERS, *PACKAGES.split()], check=True)


def import_peers() -> None:
    warnings.simplefilter("ignore")
    sys.path.append(str(PEERS))
    # streaming imports its part for images, which wants torchvision; there are none here.
    sys.modules["streaming.vision"] = types.ModuleType("streaming.vision")


class Clock:
    """Seconds from its making on, and CPU seconds of this process and of the workers that ended."""

    def __init__(self) -> None:
        self.start, self.cpu = time.perf_counter(), cpu_seconds()

    def stop(self) -> tuple[float, float]:
        return time.perf_counter() - self.start, cpu_seconds() - self.cpu


def cpu_seconds() -> float:
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


Took = tuple[tuple[float, float], int]


def lines_of(jsonl: Path, part: int, parts: int) -> Iterator[str]:
    """The texts of one part of the lines."""
    size = jsonl.stat().st_size
    begin, end = size * part // parts, size * (part + 1) // parts
    with jsonl.open("rb") as file:
        if begin:
            file.seek(begin - 1)
            file.readline()
        while file.tell() < end and (line := file.readline()):
            yield json.loads(line)["text"]


def batches_of_ids(jsonl: Path, tokenizer: Path, part: int) -> Iterator[list[list[int]]]:
    import tokenizers

    encoder = tokenizers.Tokenizer.from_file(str(tokenizer))
    batch: list[str] = []
    for text in lines_of(jsonl, part, WORKERS):
        batch.append(text)
        if len(batch) == 256:
            yield [one.ids for one in encoder.encode_batch_fast(batch)]
            batch = []
    yield [one.ids for one in encoder.encode_batch_fast(batch)]


def in_two(work: Callable[..., int], *arguments: Any) -> int:
    with multiprocessing.get_context("fork").Pool(WORKERS) as pool:
        count = sum(pool.starmap(work, [(part, *arguments) for part in range(WORKERS)]))
        pool.close()
        pool.join()
    return count


def rows_of(documents: Iterator[list[list[int]]]) -> Iterator[Any]:
    """One stream cut every LENGTH tokens; the last, short one is left out."""
    import numpy

    rest = numpy.empty(0, numpy.uint16)
    for batch in documents:
        rest = numpy.concatenate([rest, *(numpy.array(ids, numpy.uint16) for ids in batch)])
        whole = len(rest) // LENGTH * LENGTH
        yield from rest[:whole].reshape(-1, LENGTH)
        rest = rest[whole:]


# --------------------------------------------------------------------------------------------- from JSON lines


def build_huggingface(jsonl: Path, tokenizer: Path, out: Path) -> Took:
    import datasets
    import tokenizers
    import trl

    datasets.disable_progress_bars()
    encoder = tokenizers.Tokenizer.from_file(str(tokenizer))
    clock = Clock()
    texts = datasets.load_dataset("json", data_files=str(jsonl), split="train", cache_dir=str(out / "cache"))
    rows = texts.map(
        lambda batch: {"input_ids": [one.ids for one in encoder.encode_batch_fast(batch["text"])]},
        batched=True, remove_columns=texts.column_names, num_proc=WORKERS,
    )  # fmt: skip
    packed = trl.pack_dataset(rows, LENGTH, "bfd_split", {"num_proc": WORKERS})
    packed.save_to_disk(str(out / "rows"))
    took = clock.stop()
    return took, sum(map(sum, packed["seq_lengths"]))


def _mds_part(part: int, jsonl: Path, tokenizer: Path, out: Path, compression: str | None) -> int:
    from streaming import MDSWriter

    count = 0
    with MDSWriter(out=str(out / str(part)), columns={"tokens": f"ndarray:uint16:{LENGTH}"}, compression=compression) as writer:
        for row in rows_of(batches_of_ids(jsonl, tokenizer, part)):
            writer.write({"tokens": row})
            count += LENGTH
    return count


def build_mds(jsonl: Path, tokenizer: Path, out: Path, compression: str | None = None) -> Took:
    import_peers()
    import streaming  # noqa: F401

    clock = Clock()
    count = in_two(_mds_part, jsonl, tokenizer, out, compression)
    return clock.stop(), count


def _megatron_part(part: int, jsonl: Path, tokenizer: Path, out: Path) -> int:
    import numpy
    from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder

    builder, count = IndexedDatasetBuilder(str(out / f"{part}.bin"), dtype=numpy.uint16), 0
    for batch in batches_of_ids(jsonl, tokenizer, part):
        for ids in batch:
            builder.add_document(ids, [len(ids)])
            count += len(ids)
    builder.finalize(str(out / f"{part}.idx"))
    return count


def build_megatron(jsonl: Path, tokenizer: Path, out: Path) -> Took:
    import_peers()
    import megatron.core.datasets.indexed_dataset  # noqa: F401

    clock = Clock()
    count = in_two(_megatron_part, jsonl, tokenizer, out)
    return clock.stop(), count


def build_datatrove(jsonl: Path, tokenizer: Path, out: Path) -> Took:
    import_peers()
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.tokens import DocumentTokenizer
    from loguru import logger

    logger.remove()
    halves = out / "lines"  # It shares files among tasks, not lines.
    halves.mkdir()
    for part in range(WORKERS):
        (halves / f"{part}.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in lines_of(jsonl, part, WORKERS)))
    steps = [JsonlReader(str(halves)), DocumentTokenizer(str(out / "tokens"), str(tokenizer), shuffle_documents=False, batch_size=256)]
    executor = LocalPipelineExecutor(steps, tasks=WORKERS, workers=WORKERS, logging_dir=str(out / "logs"), start_method="fork")
    clock = Clock()
    executor.run()
    took = clock.stop()
    return took, sum(file.stat().st_size for file in (out / "tokens").glob("*.ds")) // 2


class _LitdataPart:
    def __init__(self, jsonl: Path, tokenizer: Path) -> None:
        self.jsonl, self.tokenizer = jsonl, tokenizer

    def __call__(self, part: int) -> Iterator[Any]:
        import torch

        for batch in batches_of_ids(self.jsonl, self.tokenizer, part):
            for ids in batch:
                yield torch.tensor(ids, dtype=torch.int32).to(torch.uint16)


def build_litdata(jsonl: Path, tokenizer: Path, out: Path, compression: str | None = None) -> Took:
    import_peers()
    from litdata import TokensLoader, optimize

    more = {"compression": compression, "compression_level": "chunk"} if compression else {}
    clock = Clock()
    optimize(
        _LitdataPart(jsonl, tokenizer), list(range(WORKERS)), str(out / "rows"), num_workers=WORKERS, chunk_bytes="16MB",
        item_loader=TokensLoader(block_size=LENGTH), start_method="fork", verbose=False, **more,
    )  # fmt: skip
    took = clock.stop()
    index = json.loads((out / "rows" / "index.json").read_text())
    return took, sum(chunk["dim"] for chunk in index["chunks"])


# --------------------------------------------------------------------------------------------------- from ids


def documents_of(ids_file: Path) -> list[Any]:
    import numpy

    ids = numpy.fromfile(ids_file, numpy.uint16)
    return numpy.split(ids, numpy.flatnonzero(ids == 50256)[:-1] + 1)


def write_mds(ids_file: Path, out: Path) -> Took:
    import_peers()
    import numpy
    from streaming import MDSWriter

    ids = numpy.fromfile(ids_file, numpy.uint16)
    rows = ids[: len(ids) // LENGTH * LENGTH].reshape(-1, LENGTH)
    clock = Clock()
    with MDSWriter(out=str(out / "rows"), columns={"tokens": f"ndarray:uint16:{LENGTH}"}) as writer:
        for row in rows:
            writer.write({"tokens": row})
    return clock.stop(), rows.size


def write_megatron(ids_file: Path, out: Path) -> Took:
    import_peers()
    import numpy
    from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder

    documents = [ids.tolist() for ids in documents_of(ids_file)]  # As Megatron's preprocess_data.py hands them over.
    clock = Clock()
    builder = IndexedDatasetBuilder(str(out / "rows.bin"), dtype=numpy.uint16)
    for ids in documents:
        builder.add_document(ids, [len(ids)])
    builder.finalize(str(out / "rows.idx"))
    return clock.stop(), sum(map(len, documents))


def write_datatrove(ids_file: Path, out: Path) -> Took:
    import_peers()
    from datatrove.pipeline.tokens.tokenizer import TokenizedFile

    documents = [ids.tolist() for ids in documents_of(ids_file)]  # As its tokenizer does.
    clock = Clock()
    file = TokenizedFile(str(out), "rows.ds", token_size=2)
    for ids in documents:
        file.write(ids, None)
    file.close()
    return clock.stop(), sum(map(len, documents))


BUILDERS: dict[str, Callable[[Path, Path, Path], Took]] = {
    "datasets + TRL": build_huggingface,
    "mosaicml-streaming": build_mds,
    "megatron-core": build_megatron,
    "datatrove": build_datatrove,
    "litdata": build_litdata,
}
COMPRESSING: dict[str, Callable[[Path, Path, Path], Took]] = {
    "mosaicml-streaming, zstd": lambda *places: build_mds(*places, "zstd"),
    "litdata, zstd": lambda *places: build_litdata(*places, "zstd"),
}
WRITERS: dict[str, Callable[[Path, Path], Took]] = {"datatrove": write_datatrove, "megatron-core": write_megatron, "mosaicml-streaming": write_mds}


def bytes_below(out: Path) -> int:
    return sum(file.stat().st_size for file in out.rglob("*") if file.is_file() and not {"cache", "lines", "logs"} & set(file.parts))


def main() -> None:
    """chunk_peers.py WHO OUT INPUT...: runs one of them; prints seconds, CPU seconds, tokens and bytes as JSON."""
    who, out = sys.argv[1], Path(sys.argv[2])
    out.mkdir(parents=True)
    places = [Path(place) for place in sys.argv[3:]]
    if who in WRITERS and len(places) == 1:
        (seconds, cpu), tokens = WRITERS[who](places[0], out)
    else:
        (seconds, cpu), tokens = {**BUILDERS, **COMPRESSING}[who](places[0], places[1], out)
    print(json.dumps({"seconds": seconds, "cpu": cpu, "tokens": tokens, "bytes": bytes_below(out)}))


if __name__ == "__main__":
    main()
