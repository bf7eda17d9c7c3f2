from typing import Any

import numpy as np

def check_array(
    array: Any,
    *,
    accept_sparse: bool = False,
    dtype: Any = "numeric",
    ensure_all_finite: bool = True,
    estimator: Any = None,
) -> Any: ...
def check_random_state(seed: Any) -> np.random.RandomState: ...
