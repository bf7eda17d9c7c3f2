"""What can go wrong, said so that a user can mend it.

Each message says what was allowed, what came and what to do. The classes also derive from the
built-in error that a caller would expect, so ``except ValueError`` works.
"""


class FillrankError(Exception):
    """The base of all errors that fillrank raises on purpose."""


class InputError(FillrankError, ValueError):
    """A value, a table or an argument is not what it has to be."""


class UnknownNameError(FillrankError, KeyError):
    """A row, a column or a field is asked for by a name that is not there."""

    # KeyError would show the repr of the message, with its line breaks escaped.
    __str__ = Exception.__str__


class ReadError(FillrankError, ValueError):
    """A file cannot be read as the table that its name or content promises."""


class OutputError(FillrankError, OSError):
    """A result cannot be written where it was asked to go."""


class NotSupportedError(FillrankError, NotImplementedError):
    """The method has no such answer, for example intervals without a posterior."""


class ClusterError(FillrankError, RuntimeError):
    """A cluster does not do its work: its scheduler or a worker is silent, or none is left."""


class NumericalError(FillrankError, ArithmeticError):
    """A computation has left the range of floating-point numbers."""


class UnitsWarning(UserWarning):
    """The columns of a table differ so much in size that one noise level cannot fit them all."""


class SmallTableWarning(UserWarning):
    """A table has too few entries for intervals that hold what they say."""


class CheckpointWarning(UserWarning):
    """A run cannot be saved, or is resumed from an older checkpoint than the newest."""


class ConvergenceWarning(UserWarning):
    """A run ended before its result can be trusted."""


class CacheWarning(UserWarning):
    """Compiled code cannot be saved for the next process."""
