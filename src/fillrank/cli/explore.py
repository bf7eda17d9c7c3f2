"""``fillrank explore``: explore a model in the browser."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from fillrank.cli import options
from fillrank.cli.messages import escape, option, report, stdout
from fillrank.cli.titles import TitleFiles


def explore(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A model saved by `fillrank fit` or model.save.")
    ],
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="The port; 0: any free port.")
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Whether to open the page in the browser.")
    ] = True,
    row_titles: options.RowTitles = None,
    column_titles: options.ColumnTitles = None,
) -> None:  # fmt: skip
    """Explore a model in the browser: search rows and columns, see predictions, fill in a file.

    The page is available only on this machine, to users who have the printed address. Ctrl-C ends it.

    Examples:

    - fillrank explore ratings.fillrank
    - fillrank explore ml-1m.fillrank --column-titles movies.dat
    """
    import fillrank as fr
    from fillrank.explore.server import Explorer
    from fillrank.explore.views import ModelView

    fitted = fr.load(model)
    titles = TitleFiles(row_titles, column_titles).read(fitted.observations_, quiet=False)
    view = ModelView(fitted, model.stem, **titles.arguments(), setting=option)
    with Explorer(view, port) as server:
        n_rows, n_columns = fitted.observations_.shape
        about = f"{fitted.method}, {n_rows:,} rows x {n_columns:,} columns"
        report(f"{escape(str(model))}: {about}. Open this address; Ctrl-C ends the explorer.")
        try:
            stdout().print(escape(server.url))
            if browser:
                webbrowser.open(server.url)
            server.serve_forever()
        except KeyboardInterrupt:
            report("The explorer has ended.")
