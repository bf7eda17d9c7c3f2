"""The scripts of benchmarks/peers import one another by name, as scripts do."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "peers"))
