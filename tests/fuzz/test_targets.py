"""A few damaged and forged files for every reader; `make trust-quick` has more of them."""

import pytest

from fuzz.campaign import run
from fuzz.run import all_targets


# The first to fit a model may have to compile its kernels.
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", all_targets())
def test_damaged_files_are_read_or_refused(name, tmp_path):
    report = run(name, n_inputs=100, seed=1, folder=tmp_path)
    assert report.findings == []
    assert report.counts["accepted"] > 0
    assert report.counts["refused"] > 0
