"""Mutation fuzzing: damaged and forged files, read in processes that may crash.

Each module in `fuzz.targets` is a target:

- ``SUFFIX``: the suffix of its files;
- ``seeds()``: a list of valid small inputs, as bytes, the same on every call;
- ``attempt(path)``: read the file at ``path``. It returns, or raises a `FillrankError`. Anything
  else is a defect: another exception, a crash, more memory than the process has, a hang;
- ``mutate(rng, data)``, optional: a change specific to the format, by `random.Random`.

Run them with ``PYTHONPATH=src:tests python -m fuzz.run [TARGET ...] --inputs 5000 --seed 0``.
"""
