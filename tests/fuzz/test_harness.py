"""The harness finds every kind of defect, and continues afterwards."""

import random
from collections import Counter

import pytest

from fuzz import campaign, planted
from fuzz.campaign import Reader, inputs, run
from fuzz.mutations import mutated
from fuzz.run import all_targets, main

MODULE = planted.__name__


def results(words, folder, seconds):
    found = []
    with Reader(MODULE, seconds) as reader:
        for number, word in enumerate(words):
            path = folder / f"{number}.txt"
            path.write_text(word)
            found.append(reader.attempt(path).result)
    return found


def test_every_defect_is_found_and_the_next_input_is_read(tmp_path):
    words = ["fine", "bad", "unexpected", "panic", "dead", "fine", "large", "bad"]
    assert results(words, tmp_path, 60) == [
        "accepted",
        "refused",
        "undocumented",
        "undocumented",
        "dead",
        "accepted",
        "undocumented",
        "refused",
    ]


@pytest.mark.parametrize("word", ["asleep", "busy"])
def test_an_input_that_hangs_is_found(word, tmp_path, monkeypatch):
    monkeypatch.setattr(campaign, "PATIENCE", 2)
    with Reader(MODULE, 0.2) as reader:
        path = tmp_path / "x.txt"
        path.write_text(word)
        assert reader.attempt(path).result == "hung"


def test_findings_are_saved_and_replayed(tmp_path, monkeypatch, capsys):
    words = [b"fine", b"dead", b"unexpected"]
    monkeypatch.setattr(campaign, "inputs", lambda target, n_inputs, seed: iter(words))
    report = run(MODULE, 3, 0, tmp_path)
    assert report.counts == Counter(accepted=1, dead=1, undocumented=1)
    assert [finding.path.read_bytes() for finding in report.findings] == words[1:]
    assert main([MODULE, "--replay", str(report.findings[1].path)]) == 1
    assert "this is not documented" in capsys.readouterr().out


def test_seeds_that_are_refused_stop_the_run(tmp_path, monkeypatch):
    with Reader("fuzz.tables") as reader, pytest.raises(RuntimeError, match="its own seeds"):
        reader.attempt(tmp_path / "x.txt")


def test_the_same_seed_gives_the_same_inputs():
    first, second, more = (list(inputs(planted, n, 7)) for n in (20, 20, 30))
    assert first == second == more[:20]
    assert len(set(first)) > 10
    assert first != list(inputs(planted, 20, 8))


def test_every_change_can_be_applied_to_any_bytes():
    rng = random.Random(0)
    for data in (b"", b"x", b"1,2\n", bytes(range(256))):
        for _ in range(300):
            assert isinstance(mutated(rng, data, [data, b"1e5"]), bytes)


def test_every_target_is_complete():
    assert "text_wide" in all_targets()
    for name in all_targets():
        target = campaign.load_target(name)
        assert target.SUFFIX.startswith(".")
        assert callable(target.attempt)
        assert target.seeds() == target.seeds()
