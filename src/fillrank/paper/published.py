"""The numbers that the paper prints.

Song and Zhu, Bayesian matrix completion via adaptive relaxed spectral regularization, AAAI 2016.
"""

from typing import NamedTuple


class Printed(NamedTuple):
    """A number with its standard deviation."""

    mean: float
    sd: float


class Setting(NamedTuple):
    """A kind of matrix: m = n, true rank q, rank truncation r."""

    size: int
    rank: int
    max_rank: int


MISSING = (0.9, 0.8, 0.5, 0.0)
SETTINGS = (Setting(500, 5, 30), Setting(1000, 10, 50))

# "Results on different missing rates", the table of the supplement: 3 data sets.
TABLE_1: dict[str, dict[Setting, tuple[Printed, ...]]] = {
    "BPMF": {
        SETTINGS[0]: (
            Printed(1.6842, 0.1374),
            Printed(0.3210, 0.0168),
            Printed(0.1304, 0.0022),
            Printed(0.0933, 0.0000),
        ),
        SETTINGS[1]: (
            Printed(0.9422, 0.0478),
            Printed(0.2396, 0.0033),
            Printed(0.1105, 0.0013),
            Printed(0.0859, 0.0007),
        ),
    },
    "GASR": {
        SETTINGS[0]: (
            Printed(0.1992, 0.0241),
            Printed(0.1321, 0.0086),
            Printed(0.0841, 0.0028),
            Printed(0.0724, 0.0036),
        ),
        SETTINGS[1]: (
            Printed(0.2513, 0.0045),
            Printed(0.1688, 0.0041),
            Printed(0.1270, 0.0034),
            Printed(0.1115, 0.0057),
        ),
    },
}


class Ratings(NamedTuple):
    """The errors of a method on MovieLens 1M; ``nmae_rounded`` is printed for GASR alone."""

    nmae: Printed
    rmse: Printed
    nmae_rounded: Printed | None = None


# "Experimental results of various methods on the MovieLens and EachMovie datasets": 5 splits. The
# EachMovie column is omitted: its data set of 36,656 users is no longer available.
TABLE_2: dict[str, Ratings] = {
    "M3F": Ratings(Printed(0.1652, 0.0004), Printed(0.9644, 0.0012)),
    "iPM3F": Ratings(Printed(0.1604, 0.0004), Printed(0.9386, 0.0024)),
    "SoftImpute": Ratings(Printed(0.1829, 0.0002), Printed(0.9469, 0.0009)),
    "SoftImpute-ALS": Ratings(Printed(0.1783, 0.0001), Printed(0.9196, 0.0013)),
    "HASI": Ratings(Printed(0.1813, 0.0002), Printed(0.9444, 0.0011)),
    "BPMF": Ratings(Printed(0.1663, 0.0002), Printed(0.8460, 0.0006)),
    # The last one is in the text below the table.
    "GASR": Ratings(Printed(0.1673, 0.0005), Printed(0.8528, 0.0025), Printed(0.1569, 0.0006)),
}
# From the same section: "the ranks it infers on MovieLens and EachMovie are both 10 on average".
RANK_ON_RATINGS = 10
