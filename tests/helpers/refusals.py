"""How a command is to refuse what it cannot do."""


def assert_refused(ran, *words):
    """It ended with code 2 and an error in words, not in a traceback."""
    assert ran.code == 2, (ran.out, ran.err)
    assert isinstance(ran.exception, SystemExit)
    assert "Traceback" not in ran.err
    assert "Error:" in ran.err
    assert ran.out == ""
    for word in words:
        assert word in ran.err, (word, ran.err)
