import sys

import pytest

from fillrank.cli.start import main


class Impatient:
    """Someone who presses Ctrl-C while the verbs are loaded."""

    def find_spec(self, name, path=None, target=None):
        if name == "fillrank.cli.main":
            raise KeyboardInterrupt


def test_ctrl_c_while_loading_ends_quietly(monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "fillrank.cli.main", raising=False)
    monkeypatch.delattr("fillrank.cli.main", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Impatient(), *sys.meta_path])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr() == ("", "")


def test_otherwise_the_verb_is_run(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["fillrank", "--version"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("fillrank ")
