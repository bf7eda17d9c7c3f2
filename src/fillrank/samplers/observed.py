"""What an observer sees of a chain of GASR: the draw to keep, its spectrum, and its history."""

import numpy as np

from fillrank.kernels.spectrum import singular_values
from fillrank.samplers.draw import Draw
from fillrank.samplers.state import Info, Options, State, signal_factors


def draw(state: State) -> Draw:
    """The signal of a state."""
    return Draw(*signal_factors(state), state.noise_variance)


def spectrum(drawn: Draw, options: Options) -> np.ndarray:
    """The singular values of Z, cleared of what the effects could have been.

    The model cannot tell Z + alpha 1^T + 1 beta^T apart from a Z that holds a part of the effects;
    what is left of Z across the all-ones directions does not depend on where that part is.
    """
    left, right = drawn.left[:, :-2], drawn.right[:, :-2]
    return singular_values(
        left,
        right,
        left.mean(axis=0, dtype=np.float64) if options.column_effects else 0.0,
        right.mean(axis=0, dtype=np.float64) if options.row_effects else 0.0,
    )


def history(state: State, info: Info, n_entries: int) -> dict[str, float]:
    """What is traced over the sweeps, in standard units."""
    return {
        "residual_variance": info.residual_square / n_entries,
        "noise_variance": state.noise_variance,
        "a": state.a,
        "b": state.b,
    }
