"""Mutation fuzzers: damaged and forged files, read in processes that may die.

Each module in `fuzz.targets` is a target:

- ``SUFFIX``: how the names of its files end;
- ``seeds()``: a list of valid small inputs, as bytes, the same on every call;
- ``attempt(path)``: read the file at ``path``. It returns, or raises a `FillrankError`. Everything
  else is a defect: another exception, a crash, more memory than the process has, a hang;
- ``mutate(rng, data)``, optional: a change that is particular to the format, by `random.Random`.

Run them with ``PYTHONPATH=src:tests python -m fuzz.run [TARGET ...] --inputs 5000 --seed 0``.
"""
