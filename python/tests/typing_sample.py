"""A user's program, for typing_test.py: mypy --strict must complain about the lines that end in `wrong`, and no others."""

import datetime
from pathlib import Path

import numpy as np

import lmemo
from lmemo.forward import BackendInstrumentation, ModelView, TokenDist


def tokens_of(store: lmemo.StoreBase, text: str) -> bytes:
    key = lmemo.Key.of(
        "tokens", {"odd name": None}, section=text, layer=np.int64(3), scale=np.float32(0.5), n=1
    )
    hit = store.find(key)
    if hit is not None:
        ids = np.frombuffer(memoryview(hit), dtype=np.int32)
        assert memoryview(hit).readonly and len(hit) == ids.nbytes
        written: datetime.datetime = hit.written
        print(written, hit == b"")
        return bytes(hit)
    store.put(key, np.zeros(3, dtype=np.int32))
    store.put(key, bytearray(b"abc"))
    stored: bool = store.put_many({key: b"abc"}) and store.put_many([(key, memoryview(b"abc"))])
    return key.digest if stored else b""


def look_after(path: Path) -> None:
    with lmemo.Store(
        path, max_bytes="2GiB", max_bytes_by_kind={"tokens": 1 << 20}, check="first_find"
    ) as store:
        store.prune(
            datetime.timedelta(days=30), progress=lambda progress: print(progress.done, progress.total)
        )
        entries: list[lmemo.Entry] = store.scan("tokens", section="a")
        fields: dict[str, lmemo.FieldValue] = {} if entries[0].key is None else entries[0].key.fields
        newest: datetime.datetime | None = store.stats().newest
        kinds: dict[str, lmemo.KindStats] = store.stats().kinds
        damage: list[lmemo.Damage] = store.verify().damage
        print(fields, newest, kinds, damage, store.explain(lmemo.Key.of("tokens")).differing[0].asked)
    try:
        store.flush()
    except lmemo.NoSpace as error:
        print(error.errno)
    with lmemo.MemoryStore("1MiB") as memory:
        tokens_of(memory, "text")


async def scores(store: lmemo.StoreBase, prompts: list[str]) -> TokenDist:
    dist = TokenDist(np.zeros(2, dtype=np.int32), np.zeros(2, dtype=np.float32), 50257)
    with BackendInstrumentation(store=store, cache_max_bytes="1GiB", trace_path=Path("trace.jsonl")) as inst:
        view = ModelView("base", model="gpt2", dtype="float32")
        one: TokenDist = inst.cached("dist", view, prompts[0], 256, lambda: dist)
        many: list[float] = inst.cached_batch("logprob", view, prompts, 0, lambda missing: [float(n) for n in missing])
        counted: dict[str, int | float] = inst.stats.to_dict()
        text: str = await inst.acached("text", view, prompts[0], 0, lambda: "x")
        print(one, many, counted, text)
        return one


def mistakes(store: lmemo.Store) -> None:
    store.find("tokens")  # wrong
    store.put(lmemo.Key.of("tokens"), "text")  # wrong
    lmemo.Key.of("tokens", layers=[1, 2])  # wrong
    lmemo.Store(check="never")  # wrong
    BackendInstrumentation(store="path")  # wrong
    number: int = BackendInstrumentation().cached("op", "base", "prompt", 1, lambda: "text")  # wrong
