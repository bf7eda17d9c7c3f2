import numpy as np
import pytest

import fillrank as fr
from fillrank.paper.sweeps import sweeps

MODELS = {
    "GASR as published": lambda: fr.GASR.as_published(max_rank=3, n_sweeps=12),
    "GASR": lambda: fr.GASR(max_rank=3, n_sweeps=12, burn_in=5, n_chains=1),
    "BPMF": lambda: fr.BPMF(max_rank=3, n_sweeps=12, burn_in=5, n_chains=1),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
@pytest.mark.filterwarnings("ignore::fillrank.ConvergenceWarning")
def test_sweeps_equal_those_of_the_estimator(make):
    data, _ = fr.synthetic(20, 15, 2, 0.5, 0.3, random_state=1)
    model = make().set_params(random_state=4, progress=False)
    chain = list(sweeps(model, data))
    assert [sweep.number for sweep in chain] == list(range(1, 13))

    model.fit(data)
    stored = chain[model.burn_in :]
    mean = np.mean([s.draw.left.astype(float) @ s.draw.right.T for s in stored], axis=0)
    expected = model.predict_block(np.arange(20), np.arange(15))
    np.testing.assert_allclose(
        stored[0].units.restore(mean, slice(None)), expected, rtol=1e-5, atol=1e-6
    )
    spectrum = stored[0].units.shared_scale * np.mean([sweep.spectrum for sweep in stored], axis=0)
    np.testing.assert_allclose(spectrum, model.singular_values_)
