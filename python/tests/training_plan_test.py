"""Steps and warm-up by the documented formulas, and what growth does to them."""

from __future__ import annotations

import warnings
from fractions import Fraction
from math import floor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lmemo
from lmemo.training import TrainingPlan


class Set:
    def __init__(self, *chunk_rows: int) -> None:
        self.chunk_rows = list(chunk_rows)

    def digest_of_first(self, chunks: int) -> str:
        return str(self.chunk_rows[:chunks])


def info(of: Set, step: int, epoch: int, consumed: int) -> dict[str, Any]:
    return {
        "global_step": step,
        "version": 1,
        "epoch": epoch,
        "consumed": consumed,
        "growths": [],
        "set": of.digest_of_first(99),
        "chunks": len(of.chunk_rows),
        "rows": sum(of.chunk_rows),
    }


def test_the_formula_by_hand() -> None:
    plan = TrainingPlan(rows=1000, epochs=3, batch_size=4, gradient_accumulation=2, world_size=2, train_fraction=0.9, warmup_fraction=0.03)
    assert plan.global_batch == 16
    assert plan.steps == 168  # 1000 × 0.9 × 3 / 16 = 168.75
    assert plan.warmup_steps == 5  # 0.03 × 168 = 5.04


def test_fractions_are_exact() -> None:
    assert TrainingPlan(rows=100, train_fraction=0.29).steps == 29  # 100 × 0.29 is 28.999999999999996 in floating point.
    assert TrainingPlan(rows=10, epochs=0.7).steps == 7


def test_warm_up_of_the_full_data_set_warns_while_it_is_too_long() -> None:
    with pytest.warns(UserWarning, match="warm-up of 100 steps, made for 100000 rows, is longer than the 50 steps"):
        plan = TrainingPlan(rows=500, batch_size=10, warmup_fraction=0.01, full_dataset_rows=100_000)
    assert plan.warmup_steps == 100
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grown = TrainingPlan(rows=50_000, batch_size=10, warmup_fraction=0.01, full_dataset_rows=100_000)
    assert grown.warmup_steps == 100 and grown.warning is None


@pytest.mark.parametrize("wrong", [{"batch_size": 0}, {"rows": -1}, {"train_fraction": 0}, {"train_fraction": 1.1}, {"warmup_fraction": 2}])
def test_what_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        TrainingPlan(**{"rows": 10, **wrong})


def test_a_set_that_did_not_grow_keeps_its_steps() -> None:
    data = Set(60, 40)
    plan = TrainingPlan(rows=100, epochs=2, batch_size=10)
    adapted = plan.adapt(info(data, 13, 1, 30), data)
    assert (adapted.grew, adapted.steps, adapted.remaining_steps) == (False, 20, 7)
    assert adapted.state["growths"] == []


def test_growth_in_the_first_epoch_gives_the_steps_of_the_grown_set() -> None:
    plan = TrainingPlan(rows=100, epochs=2, batch_size=10)
    adapted = plan.adapt(info(Set(60, 40), 3, 0, 30), Set(60, 40, 50))
    assert adapted.grew and (adapted.rows_before, adapted.rows) == (100, 150)
    assert adapted.steps == TrainingPlan(rows=150, epochs=2, batch_size=10).steps == 30
    assert adapted.state["growths"] == [[2, 30]] and adapted.state["chunks"] == 3
    assert "grew from 100 to 150 rows: 3 of 30 steps done" in adapted.summary


def test_growth_in_a_later_epoch_counts_what_was_really_read() -> None:
    plan = TrainingPlan(rows=100, epochs=3, batch_size=10)
    adapted = plan.adapt(info(Set(100), 12, 1, 20), Set(100, 60))
    # 12 done; 140 rows left of the second epoch, 160 of the third.
    assert (adapted.completed_steps, adapted.remaining_steps, adapted.steps) == (12, 30, 42)


def test_another_set_is_refused() -> None:
    plan = TrainingPlan(rows=100)
    for other in (Set(60), Set(61, 40), Set(60, 41, 7)):
        with pytest.raises(lmemo.Incompatible, match="is not a continuation"):
            plan.adapt(info(Set(60, 40), 3, 0, 30), other)


@given(
    rows=st.integers(1, 10**7), more=st.integers(0, 10**6), epochs=st.integers(1, 5), batch=st.integers(1, 512), world=st.integers(1, 16),
    epoch=st.integers(0, 4), part=st.fractions(0, 1),
)  # fmt: skip
def test_steps_never_ask_for_more_rows_than_there_are(
    rows: int, more: int, epochs: int, batch: int, world: int, epoch: int, part: Fraction
) -> None:
    epoch = min(epoch, epochs - 1)
    consumed = floor(rows * part)
    plan = TrainingPlan(rows=rows, epochs=epochs, batch_size=batch, world_size=world)
    assert plan.steps * plan.global_batch <= rows * epochs < (plan.steps + 1) * plan.global_batch
    adapted = plan.adapt(info(Set(rows), 7, epoch, consumed), Set(rows, more) if more else Set(rows))
    left = (rows + more) * (epochs - epoch) - consumed
    assert adapted.remaining_steps * plan.global_batch <= left < (adapted.remaining_steps + 1) * plan.global_batch


def test_a_checkpoint_that_says_too_little_is_refused() -> None:
    with pytest.raises(lmemo.Incompatible, match="says nothing of set, chunks"):
        TrainingPlan(rows=10).adapt({"global_step": 3}, Set(10))
