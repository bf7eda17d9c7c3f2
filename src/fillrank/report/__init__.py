"""Plots and the report. The package can be called: ``fillrank.report(model, "report.html")``.

It has the name that the function ought to have, and would hide it wherever one of its modules has been
imported first.
"""

import sys
from types import ModuleType
from typing import Any


class _Report(ModuleType):
    def __call__(self, model: Any, path: Any, **options: Any) -> None:
        """Write what a fitted model has found to an HTML file: see `fillrank.report.html.report`."""
        from fillrank.report.html import report

        report(model, path, **options)


sys.modules[__name__].__class__ = _Report
