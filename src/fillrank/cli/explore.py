"""``fillrank explore``: look at a model in the browser."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from fillrank.cli.messages import escape, out, say


def explore(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A file that `fillrank fit` or model.save has made.")
    ],
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="The port; 0: one that is free.")
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Whether to open the page.")
    ] = True,
) -> None:  # fmt: skip
    """Look at a model in the browser: search rows and columns, see what was filled in, fill a file.

    The page is served to this machine alone, and to whoever has the printed address. Ctrl-C ends it.

    Example:

    fillrank explore ratings.fillrank
    """
    import fillrank as fr
    from fillrank.explore.answers import Answers
    from fillrank.explore.server import Explorer

    fitted = fr.load(model)
    with Explorer(Answers(fitted, model.stem), port) as server:
        n_rows, n_columns = fitted.observations_.shape
        about = f"{type(fitted).__name__}, {n_rows:,} rows x {n_columns:,} columns"
        say(f"{escape(str(model))}: {about}. Open this address; Ctrl-C ends it.")
        try:
            out().print(escape(server.url))
            if browser:
                webbrowser.open(server.url)
            server.serve_forever()
        except KeyboardInterrupt:
            say("The explorer has ended.")
