import numpy as np

from fillrank.explore.label_search import LabelSearch


def labels_of(*texts):
    return LabelSearch(np.array(texts, dtype=object))


def found(labels, part, most=10):
    return [labels.texts[i] for i in labels.search(part, most).positions]


def test_best_matches_come_first():
    labels = labels_of("Susanna", "Mary Anne", "Annette", "Ann", "Hanna", "Bob", "Anna")
    assert found(labels, "ann") == ["Ann", "Anna", "Annette", "Mary Anne", "Hanna", "Susanna"]
    assert found(labels, " ANN ", most=2) == ["Ann", "Anna"]
    assert labels.search("ann", 2).total == 6


def test_case_and_accents_do_not_matter():
    labels = labels_of("Amélie", "STRASSE", "İstanbul", "Ελλάδα", "ﬁsh")
    assert found(labels, "amelie") == ["Amélie"]
    assert found(labels, "AMÉLIE") == ["Amélie"]
    assert found(labels, "straße") == ["STRASSE"]
    assert found(labels, "istanbul") == ["İstanbul"]
    assert found(labels, "ελλαδα") == ["Ελλάδα"]
    assert found(labels, "fish") == ["ﬁsh"]


def test_a_search_is_text_and_no_pattern():
    labels = labels_of("a.b", "axb", "(", "%", "")
    assert found(labels, "a.b") == ["a.b"]
    assert found(labels, "(") == ["("]
    assert found(labels, "[") == []


def test_without_text_the_first_names_are_given():
    found = labels_of("b", "a", "c").search("  ", 2)
    assert found.positions == [0, 1]
    assert found.total == 3


def test_titles_are_searched_with_the_labels():
    labels = np.array([1193, 1, 50, 1994])
    titles = {
        "1193": "Cuckoo's Nest (1975)",
        "1": "Toy Story (1995)",
        "50": "Usual Suspects (1995)",
    }
    films = LabelSearch(labels, titles)

    def at(part):
        return films.search(part, 10).positions

    assert at("nest") == [0]
    assert at("1") == [1, 0, 3, 2]
    assert at("199") == [3, 1, 2]
    assert at("story") == [1]
    assert films.search("(19", 1) == ([1], 3)
    assert films.describe(1) == {"name": "1", "title": "Toy Story (1995)"}
    assert films.describe(3) == {"name": "1994"}
    assert films.position("50") == 2
    assert films.position("Toy Story (1995)") is None


def test_names_of_other_kinds_are_text():
    dates = LabelSearch(np.array(["2024-01-31", "2024-02-29"], dtype="datetime64[ns]"))
    assert dates.texts == ["2024-01-31", "2024-02-29"]
    assert LabelSearch(np.array([10, 20])).position("20") == 1
    assert LabelSearch(np.array([1, "1"], dtype=object)).position("1") == 0
    assert LabelSearch(np.array([1, 2])).position("3") is None
