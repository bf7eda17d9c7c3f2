import numpy as np

from fillrank.explore.names import Names


def names_of(*texts):
    return Names(np.array(texts, dtype=object))


def found(names, part, most=10):
    return [names.texts[i] for i in names.search(part, most).positions]


def test_best_matches_come_first():
    names = names_of("Susanna", "Mary Anne", "Annette", "Ann", "Hanna", "Bob", "Anna")
    assert found(names, "ann") == ["Ann", "Anna", "Annette", "Mary Anne", "Hanna", "Susanna"]
    assert found(names, " ANN ", most=2) == ["Ann", "Anna"]
    assert names.search("ann", 2).total == 6


def test_case_and_accents_do_not_matter():
    names = names_of("Amélie", "STRASSE", "İstanbul", "Ελλάδα", "ﬁsh")
    assert found(names, "amelie") == ["Amélie"]
    assert found(names, "AMÉLIE") == ["Amélie"]
    assert found(names, "straße") == ["STRASSE"]
    assert found(names, "istanbul") == ["İstanbul"]
    assert found(names, "ελλαδα") == ["Ελλάδα"]
    assert found(names, "fish") == ["ﬁsh"]


def test_a_search_is_text_and_no_pattern():
    names = names_of("a.b", "axb", "(", "%", "")
    assert found(names, "a.b") == ["a.b"]
    assert found(names, "(") == ["("]
    assert found(names, "[") == []


def test_without_text_the_first_names_are_given():
    found = names_of("b", "a", "c").search("  ", 2)
    assert found.positions == [0, 1]
    assert found.total == 3


def test_names_of_other_kinds_are_text():
    dates = Names(np.array(["2024-01-31", "2024-02-29"], dtype="datetime64[ns]"))
    assert dates.texts == ["2024-01-31", "2024-02-29"]
    assert Names(np.array([10, 20])).position("20") == 1
    assert Names(np.array([1, "1"], dtype=object)).position("1") == 0
    assert Names(np.array([1, 2])).position("3") is None
