"""Axes of a figure that notebooks show, though pyplot does not manage it."""

from io import BytesIO
from typing import Any

from matplotlib.axes import Axes

# Of a figure on the screen; images have more, so that they are sharp on all screens.
_DOTS_PER_INCH = 90


class ShownAxes(Axes):
    """Axes that are displayed as their figure when a cell of a notebook returns them."""

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        figure = self.get_figure(root=True)
        assert figure is not None
        out = BytesIO()
        figure.savefig(out, format="png", facecolor="white")
        width, height = (round(_DOTS_PER_INCH * inches) for inches in figure.get_size_inches())
        data = {"text/plain": repr(self), "image/png": out.getvalue()}
        return data, {"image/png": {"width": width, "height": height}}
