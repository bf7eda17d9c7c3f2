"""The scripts of benchmarks/ import one another by name, as scripts do."""

import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path[:0] = [str(BENCHMARKS / "peers"), str(BENCHMARKS / "tables"), str(BENCHMARKS)]
