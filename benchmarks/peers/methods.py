"""The methods that are run, by name: in which environment, by which script, for how long."""

from typing import NamedTuple


class Method(NamedTuple):
    """How a method is run; ``colour`` is that of its line and its bar."""

    peer: str
    script: str
    variant: str
    iterations: int
    colour: str


OURS, PLAIN, MYFM_PATTERN = "GASR", "GASR, ratings alone", "myFM with the pattern"
SAMPLED, ADAPTIVE, MYFM = "SMURFF, sampled noise", "SMURFF, adaptive noise", "myFM"
METHODS = {
    OURS: Method("fillrank", "run_fillrank.py", "GASR", 100, "#1f4e79"),
    PLAIN: Method("fillrank", "run_fillrank.py", "GASR-plain", 100, "#6f9bc4"),
    "BPMF": Method("fillrank", "run_fillrank.py", "BPMF", 100, "#4fa3a5"),
    SAMPLED: Method("smurff", "run_smurff.py", "sampled", 100, "#c8553d"),
    ADAPTIVE: Method("smurff", "run_smurff.py", "adaptive", 100, "#e8a05c"),
    MYFM: Method("myfm", "run_myfm.py", "", 100, "#7a5195"),
    MYFM_PATTERN: Method("myfm", "run_myfm.py", "pattern", 100, "#b497c9"),
    "cmfrec": Method("cmfrec", "run_cmfrec.py", "", 20, "#6a994e"),
    "Surprise SVD": Method("surprise", "run_surprise.py", "", 40, "#8a94a0"),
    "softImpute (R)": Method("softimpute", "run_softimpute.R", "", 40, "#b08968"),
}
