"""The adapter for lm-evaluation-harness, with the harness itself, a tiny local model and local tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lm_eval
import pytest
from lm_eval.api.instance import Instance
from lm_eval.api.model import LM, CachingLM
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager

import lmemo
from lmemo.forward import BackendInstrumentation, ModelView
from lmemo.lm_eval import CachedLM, view_of
from tiny_models import tiny_model, tiny_tokenizer

TASKS = {
    "tiny_choice": """
task: tiny_choice
dataset_path: json
dataset_kwargs: {{data_files: {data}}}
test_split: train
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: "{{{{answer}}}}"
metric_list: [{{metric: acc}}]
""",
    "tiny_text": """
task: tiny_text
dataset_path: json
dataset_kwargs: {{data_files: {data}}}
test_split: train
output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{{{question}}}}"
metric_list: [{{metric: word_perplexity}}]
""",
    "tiny_answer": """
task: tiny_answer
dataset_path: json
dataset_kwargs: {{data_files: {data}}}
test_split: train
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "cat"
generation_kwargs: {{until: ["."], max_gen_toks: 4, do_sample: false}}
metric_list: [{{metric: exact_match}}]
""",
}


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> TaskManager:
    folder = tmp_path_factory.mktemp("tasks")
    questions = ["the cat sat on", "a dog ran to", "the sky is", "the sun was", "it is not"]
    lines = [{"question": text, "choices": ["a mat", "the house", "blue"], "answer": n % 3} for n, text in enumerate(questions)]
    (folder / "data.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for name, text in TASKS.items():
        (folder / f"{name}.yaml").write_text(text.format(data=folder / "data.jsonl"))
    return TaskManager(include_path=str(folder), include_defaults=False)


def harness_model(seed: int) -> HFLM:
    return HFLM(pretrained=tiny_model(seed), tokenizer=tiny_tokenizer(), batch_size=4, max_length=32)


def evaluate(lm: Any, tasks: TaskManager) -> dict[str, Any]:
    found = lm_eval.simple_evaluate(model=lm, tasks=list(TASKS), task_manager=tasks, bootstrap_iters=0, log_samples=True, verbosity="ERROR")
    return {
        name: [(sample["doc_id"], sample["resps"]) for sample in sorted(samples, key=lambda sample: sample["doc_id"])]
        for name, samples in found["samples"].items()
    }


def test_an_evaluation_is_computed_once_and_never_for_another_model(tasks: TaskManager, tmp_path: Path) -> None:
    plain = [evaluate(harness_model(seed), tasks) for seed in (1, 2)]
    assert plain[0] != plain[1]
    stats = []
    with lmemo.Store(tmp_path / "store") as store:
        for seed in (1, 1, 2, 2):
            inst = BackendInstrumentation(store=store)
            lm = CachedLM(harness_model(seed), instrumentation=inst)
            assert isinstance(lm, LM)
            assert evaluate(lm, tasks) == plain[seed - 1]
            stats.append(inst.stats)
    assert [stat.forward_passes for stat in stats] == [25, 0, 25, 0]
    assert [stat.cache_hits for stat in stats] == [0, 25, 0, 25]
    assert [stat.store_hits for stat in stats] == [0, 25, 0, 25]


def requests_of(*arguments: Any) -> list[Instance]:
    return [Instance("loglikelihood", {}, given, number) for number, given in enumerate(arguments)]


def test_the_harness_cache_serves_another_models_scores_and_this_one_does_not(tmp_path: Path) -> None:
    requests = requests_of(("the cat", " sat"), ("a dog", " ran"))
    right = [harness_model(seed).loglikelihood(requests) for seed in (1, 2)]
    for seed in (1, 2):
        theirs = CachingLM(harness_model(seed), str(tmp_path / "cache.db")).loglikelihood(requests)
    assert theirs == right[0] != right[1], "the well-known wrong hit"
    with lmemo.Store(tmp_path / "store") as store:
        for seed in (1, 2, 1, 2):
            assert CachedLM(harness_model(seed), store=store).loglikelihood(requests) == right[seed - 1]


class Scripted(LM):
    """A harness model without weights, that counts what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Any] = []
        self.fails_after = 10**9

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        answers = []
        for request in requests:
            if len(self.asked) == self.fails_after:
                raise MemoryError("killed")
            self.asked.append(request.args)
            answers.append((-float(len(request.args[1])), True))
            self.cache_hook.add_partial("loglikelihood", request.args, answers[-1])
        return answers

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> list[float]:
        raise NotImplementedError

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        for request in requests:
            self.asked.append(request.args)
            # As the harness's own models do: the request that is told is not the one that was given.
            self.cache_hook.add_partial("generate_until", (request.args[0], {}), "cut")
        return [f"{request.args[0]} {len(self.asked)}" for request in requests]

    @property
    def tokenizer_name(self) -> str:
        return "scripted"


def test_a_model_without_weights_needs_a_name() -> None:
    with pytest.raises(ValueError, match="Scripted does not show its weights"):
        CachedLM(Scripted())
    with pytest.raises(ValueError, match="give a store, or"):
        CachedLM(Scripted(), store=lmemo.MemoryStore(), instrumentation=BackendInstrumentation())
    lm = CachedLM(Scripted(), model=ModelView("lm_eval", model="scripted"))
    assert (lm.tokenizer_name, lm.rank, lm.asked) == ("scripted", 0, [])
    lm.fails_after = 3
    assert lm.lm.fails_after == 3


def test_what_a_killed_evaluation_had_finished_is_kept() -> None:
    store, requests = lmemo.MemoryStore(), requests_of(*((f"context {n}", "x" * n) for n in range(10)))
    model = Scripted()
    model.fails_after = 6
    with pytest.raises(MemoryError):
        CachedLM(model, model="scripted", store=store).loglikelihood(requests)
    again = Scripted()
    lm = CachedLM(again, model="scripted", store=store)
    assert lm.loglikelihood(requests, disable_tqdm=True) == [(-float(n), True) for n in range(10)]
    assert len(again.asked) == 4
    assert store.stats().entries == 10


def test_samples_and_pictures_are_passed_on() -> None:
    lm = CachedLM(Scripted(), model="scripted")
    greedy, sampled = {"until": ["."], "do_sample": False}, {"until": ["."], "do_sample": True}
    requests = [Instance("generate_until", {}, ("a", given), n) for n, given in enumerate((greedy, sampled, greedy))]
    assert lm.generate_until(requests) == ["a 1", "a 2", "a 1"]
    assert lm.generate_until(requests) == ["a 1", "a 3", "a 1"]
    assert lm.generate_until([Instance("generate_until", {}, ("a", {}), 0)]) == ["a 4"], "what was told half is not believed"
    picture = Instance("generate_until", {}, ("a", greedy, {"visual": [object()]}), 0)
    assert lm.generate_until([picture]) == ["a 5"]
    assert lm.generate_until([picture]) == ["a 6"]


def test_what_the_harness_is_told_counts() -> None:
    model, tokenizer = tiny_model(), tiny_tokenizer()
    views = {
        view_of(HFLM(pretrained=model, tokenizer=tokenizer, max_length=length, add_bos_token=adds_bos))
        for length in (16, 32)
        for adds_bos in (False, True)
    }
    assert len(views) == 4
